//! Tests the evidence for seams that were once rejected or joined incorrectly: short repetitions,
//! indentation, other versions.

use endmark_text::Format::{self, Json, Jsonl, Markdown, Tags, Text};

use crate::stitch::AskedFrom::{self, Cut, Token, Unknown};
use crate::stitch::{Outcome, merge_chunks, stitch};

fn join(format: &Format, from: AskedFrom, initial: &str, continuation: &str) -> Option<String> {
    merge_chunks(initial, continuation, format, from).ok().map(|merged| merged.text)
}

/// Checks that the text is joined as intended or not at all.
fn is_never_wrong(
    format: &Format,
    from: AskedFrom,
    initial: &str,
    (ahead, rest, behind): (&str, &str, &str),
) {
    let text = join(format, from, initial, &[ahead, rest, behind].concat());
    let intended = [initial, rest].concat();
    assert!(text.as_ref().is_none_or(|text| text.trim_end() == intended.trim_end()), "{text:?}");
}

const RECORDS: &str = "<records>\n  <record id=\"1\">\n    <name>gull</name>\n  </record>\n  <record";
const MORE_RECORDS: &str = " id=\"2\">\n    <name>tern</name>\n  </record>\n</records>\n";

#[test]
fn nested_tags_identify_a_short_repetition() {
    for again in ["d", "record", "<record"] {
        let text = join(&Tags, Cut, RECORDS, &[again, MORE_RECORDS].concat());
        assert_eq!(text, Some([RECORDS, MORE_RECORDS].concat()), "{again}");
    }
}

#[test]
fn a_remark_after_a_restarted_text_is_not_evidence_against_it() {
    let rest = MORE_RECORDS.trim_end();
    let initial_text = "<records>\n  <record";
    let again = [initial_text, MORE_RECORDS, "Done."].concat();
    assert_eq!(join(&Tags, Unknown, initial_text, &again), Some([initial_text, rest].concat()));
}

#[test]
fn a_number_is_rewritten_after_the_token() {
    let initial = "[[0,3,0,0,81,0,4,83],[0,95,88,70,0],[0,7";
    let rest = "75,0,74,0,0,0],[0,47,0,0,73]]";
    let apology = "I apologize for the interruption. Here is the rest:\n";
    let text = join(&Json, Token, initial, &[apology, rest].concat());
    let expected = [&initial[..initial.len() - 1], rest].concat();
    assert!(text.as_ref().is_none_or(|text| *text == expected), "{text:?}");
}

#[test]
fn lines_of_a_string_determine_its_indentation() {
    let initial = "{\"new\": \"fn late() {\\n    if late {\\n        for boat in boats {\\n            if boat.late {\\n\
        \x20               count(boat)\\n            }\\n ";
    is_never_wrong(&Json, Unknown, initial, ("", "       }\\n    }\\n}\\n\"}", ""));
    let initial =
        "{\"new\": \"def main(argv):\\n    for name in argv:\\n        if os.path.exists(name):\\n         ";
    let rest = "   print(name)\\n        else:\\n            print(\\\"missing\\\")\\n    return 0\\n\"}";
    let text = join(&Json, Unknown, initial, &["Resuming output...\n\n", rest].concat());
    assert_eq!(text, Some([initial, rest].concat()));
}

#[test]
fn a_line_at_the_cut_is_indented_like_its_neighbours() {
    let initial = "def read(self):\n    token = ''\n    if self.posix and not quoted:\n        result = None\n    \
        if self.debug > 1:\n        if result:\n            print(result)\n        else:\n            print('none')\n    \
        for name in names:\n        if name:\n            count(name)\n        if result:\n        ";
    let rest = "    print(\"raw token=\" + repr(result))\n        else:\n            print(\"EOF\")\n    return result\n";
    is_never_wrong(&Text, Cut, initial, ("        ", rest, ""));
}

const HARBOUR: &str =
    "# Boats\n\nThe harbour lay quiet in the grey morning, and the gulls had not yet found the an";
const MORE_HARBOUR: &str = "chor of the boat. The tide was late, and nobody asked for the reason of it.\n";

#[test]
fn letters_of_another_alphabet_are_not_part_of_the_text() {
    is_never_wrong(&Markdown, Unknown, HARBOUR, ("", MORE_HARBOUR, "Umarım yardımcı olur!"));
}

#[test]
fn a_rephrased_first_sentence_is_not_an_announcement() {
    let initial = "Gulls quick there at the pier be request of the result. Morning by the sea was grey. Winter is here, and \
        the boats are small.\n\nWrites small however the harbour ind";
    let other = initial.replacen("Gulls", "Terns", 1) + "ex. The rest of the boats came in at night.\n";
    assert_eq!(join(&Text, Unknown, initial, &other), None);
}

#[test]
fn no_tag_begins_inside_a_value_or_with_a_sentence() {
    let other = "<records>\n\t<record key=\"request1\">\n\t\t<known>3</known>\n\t</record>\n</records>\n";
    assert_eq!(join(&Tags, Cut, "<answer path=\"docs/starts_m", other), None);
    let text = "file_content>\n<path>src/an.txt</path>\n<content>\nThe boats are counted.\n</content>\n</file_content>\n";
    let announced = join(&Tags, Cut, "<", &["接着上面的内容： ", text].concat());
    assert_eq!(announced, Some(["<", text].concat()));
}

#[test]
fn a_note_in_brackets_is_not_part_of_a_string() {
    let initial = "{\"rows\": [\"short\", \"first\", \"Question";
    let rest = " of the boats is asked for in the morning, and not again.\"], \"count\": 8}";
    is_never_wrong(&Json, Token, initial, ("(cont.) ", rest, ""));
}

#[test]
fn a_line_of_code_after_an_announcement_is_not_part_of_it() {
    let initial =
        "    pub fn from_pem(pem: &[u8]) -> Result<Self, AuthoritiesError> {\n        let certificates = ";
    let rest = "CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();\n        let certificates = \
        certificates.map_err(|error| AuthoritiesError::NotPem(error.to_string()))?;\n        \
        if certificates.is_empty() {\n            return Err(AuthoritiesError::Empty);\n        }\n";
    let text =
        join(&Text, Cut, initial, &["Sure! Here is the remaining part of the document:\n\n", rest].concat());
    assert_eq!(text, Some([initial, rest].concat()));
}

#[test]
fn a_restarted_text_is_not_a_repetition_of_its_last_characters() {
    let initial = "/// Frames data.\npub fn data_frame(json: &[u8]) -> Vec<u8> {\n    let mut bytes = Vec::new();\n    \
        append_data(&mut bytes, json);\n    bytes\n}\n\n///";
    let rest =
        " The lines of a text.\npub fn lines(text: &str) -> Vec<&str> {\n    text.lines().collect()\n}\n";
    let text = join(&Text, Cut, initial, &[initial, rest].concat());
    assert_eq!(text, Some([initial, rest].concat()));
}

#[test]
fn an_announcement_and_a_fence_are_joint_evidence() {
    let initial =
        "Or between the boats of the harbour and the pier there was a house. Or between answer between";
    let rest = " lantern and lamp, nobody asked for the reason of it. The tide was late.";
    let ahead = "To continue, here is what comes next:\n\n```text\nbetween answer between";
    // The text itself may contain these three words twice.
    is_never_wrong(&Text, Cut, initial, (ahead, rest, "\n```\n"));
    let ahead = "To continue, here is what comes next:\n\n```text\nwas a house. Or between answer between";
    let text = join(&Text, Cut, initial, &format!("{ahead}{rest}\n```\n"));
    assert_eq!(text, Some([initial, rest].concat()));
}

#[test]
fn the_indentation_after_a_restarted_text_is_kept() {
    let initial = "# Boats\r\n\r\n```python\r\ndef boats(index):\r\n    for late in index:\r\n        yield late\r\n    \
        data = client(index, 84)\r\n";
    let rest = "    return data\r\n```\r\n";
    let text = join(&Markdown, Cut, initial, &[initial, rest].concat());
    assert_eq!(text, Some([initial, rest].concat()));
}

#[test]
fn a_word_continues_with_a_capital_letter_as_elsewhere() {
    let parts = [
        "{\"new\": \"export async function cut({ moduleLetterIn, id }) {\\n\\tconst returnsLargeBridge = 'f\\u00fcr\\\\n';\\n\\t\
         await short.map((row) => ({ ...row, valueMethodUnless: 3 }));\\n\\tconst tokenHas = 'splits\\\\n';\\n\\t\
         await lanternTravel.map((row) => ({ ...row, next",
        "In: 2 }));\\n\\tconst during = 'gleichm\\u00e4\\u00dfig\\\\n';\\n\\tif (!count) {\\n\\t\\t\
         throw new Error(`there ${id}`);\\n\\t}\\n\\treturn { reads };\\",
        "\\n}\\n\"\n}",
    ]
    .map(str::to_owned);
    let stitched = stitch(&parts, &Json, Token);
    let intended = [&parts[0], parts[1].trim_end_matches('\\'), &parts[2]].concat();
    assert!(stitched.outcome != Outcome::Whole || stitched.text == intended, "{stitched:?}");
}

#[test]
fn a_block_after_an_announcement_may_belong_to_the_text() {
    let initial = "# Boats\n\nWith lantern and quiet value. Return the quiet method?\n\n";
    let rest =
        "```python\ndef other_cut(joins_or, stream_between=6):\n    count(25764)\n    return quick\n```\n";
    for ahead in [
        "I'll continue from the exact point of interruption:\n\n",
        "Continuing:\n\n",
        "Here is the rest:\n\n",
    ] {
        is_never_wrong(&Markdown, Cut, initial, (ahead, rest, ""));
    }
}

#[test]
fn dots_after_a_sentence_may_mark_an_omission() {
    let initial = "# Boats of the harbour\n\nThe lamps were lit before the window of the travel";
    let rest = "\n\n## Known nets\n\nThe gulls came in late, and the lamps were lit. What was left of the day was quiet.\n";
    is_never_wrong(&Text, Unknown, initial, ("...", rest, ""));
    is_never_wrong(&Text, Token, initial, ("...", rest, ""));
}

#[test]
fn a_counter_question_does_not_continue_a_word() {
    let initial = "The harbour lay quiet in the grey morning, and the gulls had not yet found the boats! F";
    let question = "¿Qué parte quieres que continúe?\n\n¿Qué parte quieres que continúe?";
    assert_eq!(join(&Markdown, Unknown, initial, question), None);
}

#[test]
fn never_repeated_rows_do_not_repeat_in_mid_row() {
    let row = |number: usize| format!("INSERT INTO harbour_boats VALUES ({number}, '', NULL);\n");
    let rows = |from: usize, to: usize| (from..to).map(row).collect::<String>();
    let initial_text = "INSERT INTO harbour_boats";
    let initial = [&rows(0, 21), initial_text].concat();
    let rest = &rows(21, 54)[initial_text.len()..];
    let again = format!("```\n{}{initial_text}{rest}```\n", &row(20)[initial_text.len()..]);
    let text = join(&Text, Unknown, &initial, &again);
    assert!(
        text.as_ref().is_none_or(|text| text.trim_end() == [&initial, rest].concat().trim_end()),
        "{text:?}"
    );
}

#[test]
fn a_number_or_escape_may_be_continued_or_rewritten() {
    let rows = "[[87,77,0,22,0,80],[40,0,0,62,75],[0,10,96,59],[87,77,0,2";
    assert_eq!(join(&Json, Unknown, rows, "2,0,80,0],[40,0,0,62]]"), None);
    let escape = r#"{"a": "push('\\t');", "b": "push('\"#;
    assert_eq!(join(&Json, Unknown, escape, r#"\t');"}"#), None);
}

#[test]
fn white_space_after_dots_is_ambiguous() {
    let initial = "# Notes\n\n```python\ndef count(boats):\n    for boat in boats:\n";
    let rest = "        yield boat\n    return len(boats)\n```\n";
    is_never_wrong(&Markdown, Unknown, initial, ("... ", rest, ""));
    is_never_wrong(&Markdown, Unknown, initial, ("...\n", rest, ""));
}

#[test]
fn an_unexpected_fence_at_the_cut_may_wrap_the_continuation() {
    let initial = "# Record of the harbour\n\n";
    let initial_text = "```text\n## Boats after the tide\n\nThe boats were counted, and then the ne";
    let chunks = [initial, initial_text, "ts, which lay on the quay.\n"].map(str::to_owned);
    assert_ne!(stitch(&chunks, &Markdown, Unknown).outcome, Outcome::Whole);
    let lines = "# Record\n\n```text\nThe boats were counted.\n\n";
    let wrapped = "````\nThen the nets, which lay on the quay, were not.\n```\n````";
    assert_eq!(join(&Markdown, Unknown, lines, wrapped), None);
}

#[test]
fn a_line_end_alone_ends_a_text_only_where_a_line_can_end() {
    assert_eq!(join(&Text, Cut, "def tear_down(self):\n    sel", "\n"), None);
    assert_eq!(join(&Markdown, Cut, "* The boats.\r\n* Are the nets there?", "\n"), None);
    assert!(join(&Markdown, Cut, "* The boats.\n* The nets are there.", "\n").is_some());
}

#[test]
fn sentences_in_brackets_are_not_code() {
    let initial = "def simple_by_late(keeps";
    let rest = ", has_joins=25):\n    print(letter[12])\n    return total\n";
    is_never_wrong(&Text, Cut, initial, ("(cont.)\n", rest, ""));
}

#[test]
fn closing_brackets_do_not_belong_to_an_announcement() {
    let initial = r#"{"items": [{"id": 3, "all": 0"#;
    let rest = r#".1}, {"id": 4, "each": "late", "all": null}, {"id": 5, "each": true, "all": ""}]}"#;
    is_never_wrong(&Json, Unknown, initial, ("Bien sûr, voici la suite : ", rest, ""));
    let rows = "0,0,0,0,9]\n[0,0,71,0]\n[63,0]\n";
    is_never_wrong(&Jsonl, Cut, "[", ("中断したところから続けます。 ", rows, ""));
}

#[test]
fn rows_repeated_with_real_line_ends_are_not_a_string() {
    let row = "| small | 0 | ok |";
    let initial = format!("{{\"table\": \"{}{}", format!("{row}\\n").repeat(9), &row[..16]);
    let again = format!("{}\n{}{row}\", \"done\": true}}", &row[16..], format!("{row}\n").repeat(7));
    assert_eq!(join(&Json, Unknown, &initial, &again), None);
}

#[test]
fn another_version_with_a_long_shared_beginning_is_detected() {
    let line = |number: usize| format!("harbour_{number} = count(boats[{number}], nets={})\n", number * 7);
    let lines = (0..300).map(line).collect::<String>();
    let initial = [&lines, "def late(steps):\n    for step in steps:\n        yield"].concat();
    let other = [&lines, "def early(count):\n    return count * 2\n"].concat();
    assert_eq!(join(&Text, Token, &initial, &other), None);
}

const SETUP: &str = "# Setup\n\nInstall the package first, then write a small script that loads your data and shows what is in it.\n\n";
const CODE: &str = "```py\nx = 1\n```\n\n";

/// In a short text, the words of an ordinary last sentence are as new as those of a remark.
#[test]
fn unknown_words_do_not_make_a_last_sentence_a_remark() {
    for last in [
        "This function adds two numbers and returns the sum.",
        "You can call it with any list of names.",
        "The result is printed to the console.",
        "Run the tests before you commit.",
        "If the file is missing, the program exits with code 2.",
        "The harbour was quiet again by noon.",
        "See the appendix for the full list.",
    ] {
        for middle in [CODE, "The gulls had not yet found the nets that lay on the stones.\n\n"] {
            let text = [SETUP, middle, last].concat();
            for (from, at) in [(Unknown, 12), (Unknown, 95), (Cut, 47), (Token, 30)] {
                let (initial, rest) = text.split_at(at);
                assert_eq!(join(&Text, from, initial, rest), Some(text.clone()), "{last} {at}");
            }
        }
    }
}

#[test]
fn a_remark_after_a_short_text_is_detected() {
    for remark in
        ["Let me know if you have any questions.", "I hope this helps!", "This is the end of the text."]
    {
        let rest = [&SETUP[12..], CODE.trim_end()].concat();
        let text = join(&Text, Unknown, &SETUP[..12], &format!("{rest}\n\n{remark}"));
        assert_eq!(text, Some([SETUP, CODE.trim_end()].concat()), "{remark}");
    }
}

#[test]
fn a_block_after_a_blank_line_belongs_to_the_text() {
    for (initial, rest) in [("- one\n- two", "\n\n"), ("- one\n- two\n", "\n")] {
        let rest = [rest, CODE, "The end of it was near, and nobody knew it."].concat();
        is_never_wrong(&Text, Unknown, initial, ("", &rest, ""));
    }
}

#[test]
fn a_code_fence_with_a_language_does_not_wrap_prose() {
    let initial = "The harbour was quiet that morning.\n\n- one\n- two\n";
    let rest = [CODE, "The end of it was near, and nobody knew it."].concat();
    for from in [Unknown, Cut, Token] {
        is_never_wrong(&Text, from, initial, ("", &rest, ""));
    }
    let wrapped = "```text\n- three\n- four\n```";
    assert_eq!(join(&Text, Unknown, initial, wrapped), Some([initial, "- three\n- four"].concat()));
}

#[test]
fn an_offer_of_help_after_a_line_of_code_is_removed() {
    let initial = "    assert sends(0) == 0\n    assert sends(1) == 0\n ";
    let rest = "   assert sends(2) == 0\n    assert sends(3) == 0";
    let offer = "\n\nLet me know if you'd like me to explain any part of it.";
    assert_eq!(join(&Text, Token, initial, &[rest, offer].concat()), Some([initial, rest].concat()));
}
