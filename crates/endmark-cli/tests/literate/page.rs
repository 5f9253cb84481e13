//! Parses a page of cases: a heading, a line with the question, and fenced blocks with the input and the
//! expected output.

use crate::case::{Case, CaseQuestion, ExpectedAnswer};

/// A fenced block: the words after its opening fence, and its text.
struct Block {
    words: String,
    text: String,
}

/// Returns all cases of a page, in order.
pub(crate) fn parse_cases(page: &str) -> Result<Vec<Case>, String> {
    let mut cases = Vec::new();
    for section in sections(page) {
        let (name, lines) = section.split_first().ok_or("a heading is missing")?;
        cases.push(parse_case(name, lines).map_err(|problem| format!("{name}: {problem}"))?);
    }
    Ok(cases)
}

/// Returns the sections that begin with `## `, each with its heading first. Headings inside a block do not
/// count.
fn sections(page: &str) -> Vec<Vec<&str>> {
    let mut sections: Vec<Vec<&str>> = Vec::new();
    let mut fence: Option<&str> = None;
    for line in page.lines() {
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if line.starts_with("```") => fence = Some(opening_backticks(line)),
            None => {
                if let Some(name) = line.strip_prefix("## ") {
                    sections.push(vec![name]);
                    continue;
                }
            }
        }
        if let Some(section) = sections.last_mut() {
            section.push(line);
        }
    }
    sections
}

/// Returns the backticks at the beginning of a line.
fn opening_backticks(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches('`').len()]
}

fn parse_case(name: &str, lines: &[&str]) -> Result<Case, String> {
    let (mut question_line, mut blocks) = (None, Vec::new());
    let mut lines = lines.iter();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let fence = opening_backticks(line);
            let inside: Vec<&str> = lines.by_ref().take_while(|line| **line != fence).copied().collect();
            blocks.push(Block { words: line[fence.len()..].trim().to_owned(), text: inside.join("\n") });
        } else if question_line.is_none()
            && ["detect ", "stitch ", "cap ", "findings ", "guard ", "endmark "]
                .iter()
                .any(|command| line.starts_with(command))
        {
            question_line = Some(*line);
        }
    }
    let question_line = question_line.ok_or(
        "no line says `detect FORMAT`, `stitch FORMAT, from WHERE`, `cap FORMAT, LIMITS`, `findings …`, `guard …` or `endmark …`",
    )?;
    let last = blocks.pop().ok_or("no block says what comes out")?;
    let question = parse_question(question_line, &blocks)?;
    Ok(Case { name: name.to_owned(), question, expected: parse_expected(&last)? })
}

fn parse_question(question_line: &str, blocks: &[Block]) -> Result<CaseQuestion, String> {
    let (command, rest) = question_line.split_once(' ').ok_or("nothing is asked")?;
    if ["findings", "guard", "endmark"].contains(&command) {
        let typed = question_line.strip_prefix("endmark ").unwrap_or(question_line);
        let mut words = typed.split_whitespace().map(str::to_owned);
        let command = words.next().ok_or("no command is typed")?;
        let files = blocks.iter().map(parse_file).collect::<Result<_, _>>()?;
        return Ok(CaseQuestion::Command { command, arguments: words.collect(), files });
    }
    if command == "cap" {
        return parse_cap_question(rest, blocks);
    }
    let (format, from) = rest.split_once(", from ").unwrap_or((rest, "unknown"));
    let (format, marker) = match format.split_once(' ') {
        Some((format, marker)) => (format, Some(marker.trim_matches('`').to_owned())),
        None => (format, None),
    };
    let format = format.to_owned();
    let texts: Vec<String> = blocks.iter().map(|block| block.text.clone()).collect();
    let words: Vec<&str> = blocks.iter().map(|block| block.words.as_str()).collect();
    match (command, words.as_slice()) {
        ("detect", ["text"]) => Ok(CaseQuestion::Detect { format, marker, text: texts.concat() }),
        ("stitch", ["first", rest @ ..])
            if !rest.is_empty() && rest.iter().all(|word| *word == "continuation") =>
        {
            Ok(CaseQuestion::Stitch { format, marker, chunks: texts, from: from.to_owned() })
        }
        _ => Err(format!("`{command}` cannot be asked with the blocks {words:?}")),
    }
}

/// Parses a question such as `FORMAT, 200 chars, 5 items, head`. In its text, `+ 300 lines of TEXT` repeats a
/// line.
fn parse_cap_question(rest: &str, blocks: &[Block]) -> Result<CaseQuestion, String> {
    let mut words = rest.split(", ");
    let format = words.next().unwrap_or_default().to_owned();
    let mut limits = Vec::new();
    for word in words {
        limits.push(match word.split_once(' ') {
            None => ("keep", word.into()),
            Some((count, unit)) => {
                let count: u64 = count.parse().map_err(|_| format!("`{word}` is no limit"))?;
                let names = ["max_chars", "max_bytes", "max_tokens", "max_items"];
                let name = names.into_iter().find(|name| name.ends_with(unit));
                (name.ok_or_else(|| format!("`{unit}` is no unit"))?, count.into())
            }
        });
    }
    let [text] = blocks else { return Err("`cap` takes one text".to_owned()) };
    let lines = text.text.lines().map(|line| {
        let repeated = line.strip_prefix("+ ").and_then(|line| line.split_once(" lines of "));
        let repeated = repeated.and_then(|(count, text)| Some((count.parse::<usize>().ok()?, text)));
        // `#` is replaced by the line number.
        let lines = |(count, text): (usize, &str)| {
            (1..=count).map(|number| text.replace('#', &number.to_string())).collect::<Vec<_>>().join("\n")
        };
        repeated.map_or_else(|| line.to_owned(), lines)
    });
    Ok(CaseQuestion::Cap { format, limits, text: lines.collect::<Vec<_>>().join("\n") })
}

/// Parses `file NAME`, whose text ends with a newline, or `cut file NAME`, whose text does not.
fn parse_file(block: &Block) -> Result<(String, String), String> {
    let words: Vec<&str> = block.words.split_whitespace().collect();
    match words.as_slice() {
        ["file", name] => Ok(((*name).to_owned(), format!("{}\n", block.text))),
        ["cut", "file", name] => Ok(((*name).to_owned(), block.text.clone())),
        _ => Err(format!("`{}` names no file", block.words)),
    }
}

fn parse_expected(block: &Block) -> Result<ExpectedAnswer, String> {
    let mut words = block.words.split_whitespace();
    let outcome = words.next().ok_or("the last block does not say what comes out")?.to_owned();
    let code = words.next().map(str::to_owned);
    Ok(ExpectedAnswer { outcome, code, text: block.text.clone() })
}
