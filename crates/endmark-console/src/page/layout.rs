//! The layout that all pages share, and small components.

use std::fmt::Write as _;

use maud::{DOCTYPE, Markup, html};

use super::display;
use crate::answer::ConsoleError;
use crate::console::Console;

/// The entries of the navigation, each with its address and its name.
const PAGES: [(&str, &str); 8] = [
    ("/endmark/", "Overview"),
    ("/endmark/requests", "Requests"),
    ("/endmark/sessions", "Sessions"),
    ("/endmark/budgets", "Budgets"),
    ("/endmark/runs", "Fleet"),
    ("/endmark/usage", "Usage"),
    ("/endmark/compactions", "Compactions"),
    ("/endmark/keys", "Keys"),
];

/// The parts of a page around its content.
#[derive(Default)]
pub(super) struct PageFrame<'a> {
    /// The address of the navigation entry that is marked as current.
    pub current_address: &'a str,
    /// The title in the browser's tab.
    pub title: &'a str,
    /// The JSON route with the same data.
    pub json: Option<String>,
    /// The interval in seconds at which the page is refreshed, if any.
    pub refresh_seconds: Option<u32>,
    /// The route whose events trigger a refresh.
    pub refresh_events: Option<String>,
}

impl PageFrame<'_> {
    /// Returns the complete page.
    pub(super) fn page(&self, console: &Console, content: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) " · Endmark" }
                    link rel="icon" href="/endmark/assets/mark.svg" type="image/svg+xml";
                    link rel="stylesheet" href="/endmark/assets/page.css";
                    script src="/endmark/assets/page.js" defer {}
                }
                body {
                    a.skip href="#content" { "Skip to the content" }
                    (self.navigation(console))
                    main id="content" data-seconds=[self.refresh_seconds] data-events=[self.refresh_events.as_deref()] { (content) }
                    footer.foot {
                        span { "Endmark " (env!("CARGO_PKG_VERSION")) }
                        span { "Prices as of " (console.models.as_of()) }
                        @match console.keep_days {
                            0 => span { "Records are kept forever" },
                            days => span { "Records are kept for " (display::count_with_noun(days, "day", "days")) },
                        }
                        @if let Some(json) = &self.json { a href=(json) { "This page as JSON" } }
                    }
                }
            }
        }
    }

    fn navigation(&self, console: &Console) -> Markup {
        html! {
            header.top {
                a.wordmark href="/endmark/" aria-label="Endmark, overview" { "Endmark" i {} }
                nav.pages aria-label="Pages" { ul {
                    @for (address, name) in PAGES {
                        li { a href=(address) aria-current=[(address == self.current_address).then_some("page")] { (name) } }
                    }
                } }
                @if self.refresh_seconds.is_some() || self.refresh_events.is_some() { p.live { "Live" } }
                @if console.access.has_key() && !self.current_address.is_empty() {
                    form method="post" action="/endmark/logout" {
                        input type="hidden" name="token" value=(console.access.form_token());
                        button { "Log out" }
                    }
                }
            }
        }
    }
}

/// Returns the error page for a failed request.
pub(super) fn error_page(console: &Console, failure: &ConsoleError) -> Markup {
    let content = html! {
        h1 { "This page cannot be shown" }
        section.card {
            p { bdi { (failure) } }
            p { a href="/endmark/" { "To the overview" } }
        }
    };
    PageFrame { title: "This page cannot be shown", ..PageFrame::default() }.page(console, &content)
}

/// Returns a page title with content below it.
pub(super) fn lead(title: &Markup, below: &Markup) -> Markup {
    html! { div.lead { div { h1 { (title) } (below) } } }
}

/// States that a page shows only this gateway's records, if `is_alone`.
pub(super) fn gateway_alone_note(is_alone: bool) -> Markup {
    html! { @if is_alone { p.muted { "The database cannot be read now. These are the records of this gateway alone." } } }
}

/// Returns a card with a heading.
pub(super) fn card(id: &str, heading: &Markup, beside: &Markup, content: &Markup) -> Markup {
    html! {
        section.card aria-labelledby=(id) {
            header { h2 id=(id) { (heading) } (beside) }
            (content)
        }
    }
}

/// Makes a table scroll horizontally if it is wider than the page.
pub(super) fn scroll(label: &str, table: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="region" aria-label=(label) { (table) } }
}

/// Shows a large figure with its name, trend and note.
pub(super) fn figure(name: &str, value: &Markup, trend: &Markup, note: &Markup) -> Markup {
    html! {
        div {
            dt { (name) }
            dd.value { (value) }
            @if !trend.0.is_empty() { dd.trend { (trend) } }
            dd.note { (note) }
        }
    }
}

/// Returns a table cell with a number.
pub(super) fn number(value: impl std::fmt::Display) -> Markup {
    html! { td.num { (value) } }
}

/// Shows the first characters of a hash. The complete hash is in `title`.
pub(super) fn hash(hash: &str) -> Markup {
    if hash.is_empty() {
        return html! { span.muted { "none" } };
    }
    let short: String = hash.chars().take(8).collect();
    html! { bdi.id title=(hash) { (short) } }
}

/// Shows a session's hash as a link to the session's page.
pub(super) fn session(session: &str) -> Markup {
    if session.is_empty() {
        return hash(session);
    }
    html! { a href={ "/endmark/sessions/" (percent_encode(session)) } { (hash(session)) } }
}

/// Shows a client by the name of its key, or by the first characters of its credential's hash.
pub(super) fn client(credential: &str) -> Markup {
    match credential.strip_prefix("key:") {
        Some(name) => display::name(name),
        None if credential.is_empty() => html! { "no key" },
        None => html! { "client " (hash(credential)) },
    }
}

/// Returns the CSS class of an outcome. Returns `None` if the word is not an outcome.
pub(super) fn outcome_class(word: &str) -> Option<&str> {
    match word {
        "whole" | "resumed" | "restarted" | "corrected" | "cut" | "exhausted" => Some(word),
        "failed" | "refused" | "interrupted" => Some("bad"),
        "cancelled" | "unread" => Some("other"),
        "recovering" => Some("active"),
        _ => None,
    }
}

/// Shows a status in the colour and shape of its meaning.
pub(super) fn chip(word: &str) -> Markup {
    let class = outcome_class(word).unwrap_or(match word {
        "succeeded" | "valid" => "good",
        "ended" | "revoked" | "used up" => "bad",
        "released" | "retry-queued" => "warn",
        "running" | "queued" => "active",
        _ => "other",
    });
    html! { span class={ "chip " (class) } { bdi { (word) } } }
}

/// Returns the link to the next page of a list, if there is one.
pub(super) fn next_page_link(
    place: &str,
    parameters: &[(&str, &str)],
    key: &str,
    next: Option<&str>,
) -> Markup {
    let Some(next) = next else { return html! {} };
    let given = parameters.iter().copied().chain([(key, next)]).filter(|(_, value)| !value.is_empty());
    let query: Vec<String> = given.map(|(name, value)| format!("{name}={}", percent_encode(value))).collect();
    html! { div.older { span {} a.button rel="next" href={ (place) "?" (query.join("&")) } { "Older" } } }
}

/// Percent-encodes a value for a URL.
pub(super) fn percent_encode(value: &str) -> String {
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

/// Number of characters that are shown from each end of a long text.
const EXCERPT_CHARS: usize = 20_000;

/// Shows an untrusted text. Of a long text, shows only the two ends and the size of the omitted part.
pub(super) fn excerpt(text: &str) -> Markup {
    let length = text.chars().count();
    if length <= 2 * EXCERPT_CHARS {
        return html! { pre.text tabindex="0" { bdi { (text) } } };
    }
    let head: String = text.chars().take(EXCERPT_CHARS).collect();
    let tail: String = text.chars().skip(length - EXCERPT_CHARS).collect();
    html! {
        pre.text tabindex="0" { bdi { (head) } }
        p.muted { "… " (length - 2 * EXCERPT_CHARS) " characters are left out here; the JSON route has them …" }
        pre.text tabindex="0" { bdi { (tail) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untrusted_text_is_escaped() {
        let hostile = "<script>alert(1)</script>\u{202e}\"'&";
        for markup in [
            excerpt(hostile),
            chip(hostile),
            hash(hostile),
            display::time_ago(0, hostile),
            number(hostile),
            client(hostile),
        ] {
            let shown = markup.into_string();
            assert!(!shown.contains("<script>") && !shown.contains("=\"<"), "{shown}");
        }
        let link =
            next_page_link("/endmark/runs", &[("model", "a&b=\"<é")], "before", Some("run 1")).into_string();
        assert!(link.contains("?model=a%26b%3D%22%3C%C3%A9&amp;before=run%201"), "{link}");
    }

    #[test]
    fn a_long_text_reports_the_omitted_bytes() {
        let shown = excerpt(&"ä".repeat(2 * EXCERPT_CHARS + 7)).into_string();
        assert!(shown.contains("… 7 characters are left out"), "{}", shown.len());
    }
}
