//! Logs in with the admin key, and sets a cookie that replaces the key.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use maud::{Markup, html};

use super::layout::PageFrame;
use super::{document, see_other};
use crate::access::Access;
use crate::answer::{ConsoleBody, ConsoleError};
use crate::console::Console;
use crate::query::Query;

/// Returns the login form. `was_wrong` is true after an attempt with a wrong key.
pub(super) fn form(console: &Console, was_wrong: bool) -> Markup {
    let content = html! {
        h1 { "Log in" }
        section.card {
        p { "This gateway asks for its admin key, the value of " code { "admin_key" } " in its configuration." }
        @if was_wrong { p.alarm role="alert" { "That is not the admin key." } }
        form.filters method="post" action="/endmark/login" {
            div {
                label for="key" { "Admin key" }
                input id="key" name="key" type="password" autocomplete="current-password" required;
            }
            div.do { button.primary { "Log in" } }
        }
        }
    };
    PageFrame { title: "Log in", ..PageFrame::default() }.page(console, &content)
}

/// Checks the admin key, and sets the cookie if it is right.
pub(super) fn log_in(console: &Console, body: &Bytes) -> Result<Response<ConsoleBody>, ConsoleError> {
    let form = parse_form(body, &["key"])?;
    let Some(cookie) = console.access.log_in(form.text("key").unwrap_or_default()) else {
        let mut response = document(self::form(console, true));
        *response.status_mut() = StatusCode::UNAUTHORIZED;
        return Ok(response);
    };
    Ok(with_cookie(redirect("/endmark/"), &cookie))
}

/// Removes the cookie.
pub(super) fn log_out(console: &Console, body: &Bytes) -> Result<Response<ConsoleBody>, ConsoleError> {
    let form = parse_form(body, &["token"])?;
    console.access.check_form(form.text("token"))?;
    Ok(with_cookie(redirect("/endmark/login"), &Access::log_out()))
}

/// Parses the fields of a form.
pub(super) fn parse_form(body: &Bytes, known: &[&str]) -> Result<Query, ConsoleError> {
    let text =
        str::from_utf8(body).map_err(|_| ConsoleError::BadRequest("the form is not text".to_owned()))?;
    Query::parse(Some(text), known)
}

pub(super) fn redirect(place: &str) -> Response<ConsoleBody> {
    see_other(place)
}

fn with_cookie(mut response: Response<ConsoleBody>, cookie: &str) -> Response<ConsoleBody> {
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}
