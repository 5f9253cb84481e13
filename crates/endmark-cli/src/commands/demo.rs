//! `endmark demo`: the whole demonstration, without an account or a network. (PC-9)

use endmark_console::reports::recoveries;
use endmark_failure::CommandError;
use endmark_store::runtime;
use serde::Serialize;

use crate::context::Context;
use crate::demo::{self, PlayedStory, ReceivedReply, Scene};
use crate::view::answer::{Answer, to_data};
use crate::view::paint::{Paint, Painter};
use crate::view::recoveries as recoveries_view;
use crate::view::table::Layout;

/// Width of each column in characters, so that two columns and a gap fit into 80.
const COLUMN_CHARS: usize = 37;

/// Marks a seam.
const SEAM: &str = "∎";

/// Runs the demonstration. The answer is negative if a reply is not whole.
pub(crate) fn run(context: &Context) -> Result<Answer, CommandError> {
    let story = runtime::block_on(demo::run_story())?.map_err(|message| CommandError::Upstream {
        message: format!("the demonstration failed: {message}"),
        hint: Some("It needs two free ports on 127.0.0.1 and a writable temporary folder.".to_owned()),
    })?;
    let data = to_data(&DemoReport::new(&story))?;
    let text = render_text(&story, context.terminal.table_layout());
    Ok(match story.scenes.iter().filter(|scene| !scene.is_whole()).count() {
        0 => Answer::yes(data, text),
        cut => Answer::no_in_text(data, text, "not_whole", format!("{cut} replies are not whole")),
    })
}

/// Answer data of `demo`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DemoReport<'a> {
    scenes: Vec<SceneReport<'a>>,
    log: Vec<recoveries::RecoveryEntry<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SceneReport<'a> {
    title: &'a str,
    asked: &'a str,
    directly: ReplyReport<'a>,
    through_endmark: ReplyReport<'a>,
    seams: Vec<usize>,
    whole: bool,
    recovery: Option<recoveries::RecoveriesReport<'a>>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ReplyReport<'a> {
    text: &'a str,
    finish_reason: &'a str,
    /// The id of the request, if the gateway recovered its reply.
    request_id: Option<&'a str>,
}

impl<'a> DemoReport<'a> {
    fn new(story: &'a PlayedStory) -> Self {
        let scene = |scene: &'a Scene| SceneReport {
            title: scene.title,
            asked: &scene.request,
            directly: ReplyReport::new(&scene.direct),
            through_endmark: ReplyReport::new(&scene.through_endmark),
            seams: scene.seams(),
            whole: scene.is_whole(),
            recovery: scene.recovery.as_ref().map(recoveries::recovery_report),
        };
        Self {
            scenes: story.scenes.iter().map(scene).collect(),
            log: story.log.iter().map(recoveries::RecoveryEntry::new).collect(),
        }
    }
}

impl<'a> ReplyReport<'a> {
    fn new(received: &'a ReceivedReply) -> Self {
        Self {
            text: &received.text,
            finish_reason: &received.finish_reason,
            request_id: received.request_id.as_deref(),
        }
    }
}

fn render_text(story: &PlayedStory, layout: Layout) -> String {
    let painter = layout.painter;
    let mut text =
        format!("A server cuts every reply on purpose, at a small token limit. {SEAM} marks the seam.\n");
    for (number, scene) in (1..).zip(&story.scenes) {
        text.push_str(&scene_text(number, scene, painter));
    }
    text.extend(["\n", &painter.paint(Paint::Strong, "What Endmark recorded"), " (`endmark log`)\n\n"]);
    text.push_str(&recoveries_view::render_text(&story.log, layout));
    text.push_str("\nWith a server of your own:\n\n  endmark serve --upstream http://127.0.0.1:8080/v1\n");
    text
}

fn scene_text(number: usize, scene: &Scene, painter: Painter) -> String {
    let title = painter.paint(Paint::Strong, &format!("{number}. {}", scene.title));
    let verdict = |paint, word: &str, reason: &str| (paint, format!("{word}, finish_reason {reason}"));
    let directly = verdict(Paint::Bad, "cut", &scene.direct.finish_reason);
    let (paint, word) = if scene.is_whole() { (Paint::Good, "whole") } else { (Paint::Bad, "NOT WHOLE") };
    let through = verdict(paint, word, &scene.through_endmark.finish_reason);
    let mut text = format!("\n{title}  {}\n", painter.paint(Paint::Dim, &scene.request));
    let faint = |heading: &str| (Some(Paint::Dim), heading.to_owned());
    let mut rows = vec![
        (faint("directly"), faint("through Endmark")),
        ((Some(directly.0), directly.1), (Some(through.0), through.1)),
    ];
    let left = wrap(&scene.direct.text, COLUMN_CHARS);
    let right = wrap(&mark_seams(&scene.through_endmark.text, &scene.seams()), COLUMN_CHARS);
    for row in 0..left.len().max(right.len()) {
        let line = |lines: &[String]| (None, lines.get(row).cloned().unwrap_or_default());
        rows.push((line(&left), line(&right)));
    }
    for ((left_paint, left), (right_paint, right)) in rows {
        // Pad before painting: colour codes have no width.
        let left = paint_text(painter, left_paint, &format!("{left:<COLUMN_CHARS$}"));
        let right =
            paint_text(painter, right_paint, &right).replace(SEAM, &painter.paint(Paint::Doubt, SEAM));
        text.extend([format!("   {left}   {right}").trim_end(), "\n"]);
    }
    text
}

fn paint_text(painter: Painter, paint: Option<Paint>, text: &str) -> String {
    paint.map_or_else(|| text.to_owned(), |paint| painter.paint(paint, text))
}

/// Returns the text with its seams marked.
fn mark_seams(text: &str, seams: &[usize]) -> String {
    let mut marked = String::with_capacity(text.len() + seams.len() * SEAM.len());
    for (at, character) in text.char_indices() {
        if seams.contains(&at) {
            marked.push_str(SEAM);
        }
        marked.push(character);
    }
    marked
}

/// Wraps a text into lines of at most `width` characters, at spaces if possible.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split_inclusive(' ') {
        if line.chars().count() + word.trim_end().chars().count() > width && !line.is_empty() {
            lines.push(line.trim_end().to_owned());
            line.clear();
        }
        for character in word.chars() {
            if line.chars().count() == width && character != ' ' {
                lines.push(std::mem::take(&mut line));
            }
            line.push(character);
        }
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_lines_are_complete_and_short_enough() {
        let text = "a few short words and onethatismuchtoolongforitsline, then an end";
        let set = wrap(text, 12);
        assert!(set.iter().all(|line| line.chars().count() <= 12), "{set:?}");
        assert_eq!(set.concat().replace(' ', ""), text.replace(' ', ""));
    }

    #[test]
    fn a_seam_is_marked_at_the_start_of_the_continuation() {
        assert_eq!(mark_seams("äbc", &[2]), "ä∎bc");
    }
}
