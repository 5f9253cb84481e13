//! What all pages have in common, and the small parts that they are made of.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, html};

use crate::answer::Failure;
use crate::console::Console;

/// The pages, by their addresses.
const PAGES: [(&str, &str); 7] = [
    ("/endmark/", "Overview"),
    ("/endmark/recoveries", "Recoveries"),
    ("/endmark/usage", "Usage"),
    ("/endmark/budgets", "Budgets"),
    ("/endmark/keys", "Keys"),
    ("/endmark/compactions", "Compactions"),
    ("/endmark/runs", "Fleet"),
];

/// A whole page; `place` is the address of the page that it belongs to.
pub(super) fn page(console: &Console, place: &str, title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " · Endmark" }
                link rel="icon" href="/endmark/assets/mark.svg" type="image/svg+xml";
                link rel="stylesheet" href="/endmark/assets/uPlot.min.css";
                link rel="stylesheet" href="/endmark/assets/page.css";
                script src="/endmark/assets/uPlot.iife.min.js" defer {}
                script src="/endmark/assets/page.js" defer {}
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header {
                    a.name href="/endmark/" { "Endmark" }
                    nav aria-label="Pages" {
                        @for (address, name) in PAGES {
                            @if address == place { a href=(address) aria-current="page" { (name) } }
                            @else { a href=(address) { (name) } }
                        }
                    }
                    @if console.access.has_key() && !place.is_empty() {
                        form method="post" action="/endmark/logout" {
                            input type="hidden" name="token" value=(console.access.form_token());
                            button { "Log out" }
                        }
                    }
                }
                main id="content" { h1 { bdi { (title) } } (content) }
            }
        }
    }
}

/// Why there is no page.
pub(super) fn failure(console: &Console, failure: &Failure) -> Markup {
    let content = html! {
        p { bdi { (failure) } }
        p { a href="/endmark/" { "To the overview" } }
    };
    page(console, "", "This page cannot be shown", &content)
}

/// A moment as the store writes it (UTC), which a script shows in the viewer's zone.
pub(super) fn moment(at: &str) -> Markup {
    let machine = format!("{}Z", at.replacen(' ', "T", 1));
    html! { time datetime=(machine) { (at) " UTC" } }
}

/// A cell with a number, exactly as the JSON has it.
pub(super) fn number(value: impl std::fmt::Display) -> Markup {
    html! { td.number { (value) } }
}

/// The beginning of a hash, with all of it for whoever asks.
pub(super) fn hash(hash: &str) -> Markup {
    if hash.is_empty() {
        return html! { span.faint { "none" } };
    }
    let short: String = hash.chars().take(16).collect();
    html! { bdi.hash title=(hash) { (short) } }
}

/// A session's hash, with the way to its page.
pub(super) fn session(session: &str) -> Markup {
    if session.is_empty() {
        return hash(session);
    }
    html! { a href={ "/endmark/sessions/" (encoded(session)) } { (hash(session)) } }
}

/// A word with its meaning as a colour; the word says it alone.
pub(super) fn word(word: &str) -> Markup {
    let class = match word {
        "resumed" | "restarted" | "corrected" | "whole" | "succeeded" | "RESOLVED" => "good",
        "exhausted" | "failed" | "released" | "EXHAUSTED" | "interrupted" => "bad",
        _ => "doubt",
    };
    html! { span class=(class) { bdi { (word) } } }
}

/// The link to the next page of a list, where there is one.
pub(super) fn further(place: &str, parameters: &[(&str, &str)], key: &str, next: Option<&str>) -> Markup {
    let Some(next) = next else { return html! {} };
    let given = parameters.iter().copied().chain([(key, next)]).filter(|(_, value)| !value.is_empty());
    let query: Vec<String> = given.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    html! { p { a rel="next" href={ (place) "?" (query.join("&")) } { "Older ones" } } }
}

/// A value as it stands in an address.
pub(super) fn encoded(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// How much of a text one page shows, in characters, from each of its ends.
const EXCERPT_CHARS: usize = 20_000;

/// A text of somebody else, or its two ends with what is left out between them said.
pub(super) fn excerpt(text: &str) -> Markup {
    let length = text.chars().count();
    if length <= 2 * EXCERPT_CHARS {
        return html! { pre tabindex="0" { bdi { (text) } } };
    }
    let head: String = text.chars().take(EXCERPT_CHARS).collect();
    let tail: String = text.chars().skip(length - EXCERPT_CHARS).collect();
    html! {
        pre tabindex="0" { bdi { (head) } }
        p.faint { "… " (length - 2 * EXCERPT_CHARS) " characters are left out here; the JSON route has them …" }
        pre tabindex="0" { bdi { (tail) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_is_text_and_nothing_else() {
        let hostile = "<script>alert(1)</script>\u{202e}\"'&";
        for markup in [excerpt(hostile), word(hostile), hash(hostile), moment(hostile), number(hostile)] {
            let shown = markup.into_string();
            assert!(!shown.contains("<script>") && !shown.contains("=\"<"), "{shown}");
        }
        let link = further("/endmark/runs", &[("model", "a&b=\"<é")], "before", Some("run 1")).into_string();
        assert!(link.contains("?model=a%26b%3D%22%3C%C3%A9&amp;before=run%201"), "{link}");
    }

    #[test]
    fn a_long_text_says_what_is_left_out() {
        let shown = excerpt(&"ä".repeat(2 * EXCERPT_CHARS + 7)).into_string();
        assert!(shown.contains("… 7 characters are left out"), "{}", shown.len());
    }
}
