//! Serves the stored data as pages below `/endmark/`. The pages show the same data as the JSON routes. They
//! work without a script, which only refreshes them.

mod assets;
mod budgets;
mod display;
mod keys;
mod layout;
mod login;
mod output;
mod overview;
mod plot;
mod request;
mod requests;
mod runs;
mod sessions;
mod usage;
mod visible_controls;

use http::{HeaderValue, Method, Response, StatusCode, header};
use maud::Markup;

use crate::answer::{ConsoleBody, ConsoleError, document_response};
use crate::console::{Console, ConsoleRequest};

/// The prefix of the pages.
const PAGE_PREFIX: &str = "/endmark";

/// Pages may load content only from the gateway. Inline scripts and styles do not run.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Maximum rows of a list on one page.
const ROWS_PER_PAGE: u32 = 50;

/// Answers a request for a page.
pub(crate) async fn respond(console: &Console, visit: &ConsoleRequest) -> Response<ConsoleBody> {
    let shown = render(console, visit).await;
    shown.unwrap_or_else(|failure| error_page(console, &failure))
}

async fn render(console: &Console, visit: &ConsoleRequest) -> Result<Response<ConsoleBody>, ConsoleError> {
    let (head, store) = (&visit.head, &visit.store);
    let path = head.uri.path().strip_prefix(PAGE_PREFIX).unwrap_or_default().trim_matches('/');
    let query = head.uri.query();
    let parts = path.split_once('/').unwrap_or((path, ""));
    // These files do not need the admin key: any client of the gateway may read them.
    match (&head.method, parts) {
        (&Method::GET | &Method::HEAD, ("assets", name)) => return assets::respond(&head.headers, name),
        (&Method::GET | &Method::HEAD, ("login", "")) => return Ok(document(login::form(console, false))),
        (&Method::POST, ("login", "")) => return login::log_in(console, &visit.body),
        _ => {}
    }
    console.access.admit(&head.headers)?;
    let page = match (&head.method, parts) {
        (&Method::POST, ("logout", "")) => return login::log_out(console, &visit.body),
        (&Method::POST, ("budgets", "raise")) => return budgets::raise(console, visit).await,
        (&Method::POST, ("keys", "revoke")) => return keys::revoke(console, visit).await,
        (&Method::GET | &Method::HEAD, parts) => match parts {
            ("", "") => overview::page(console, visit).await?,
            ("requests", "") => requests::list(console, store, query).await?,
            ("recoveries", "") => return Ok(see_other("/endmark/requests?outcome=any-cut")),
            ("requests" | "recoveries", id) => request::page(console, store, query, id).await?,
            ("usage", "") => usage::page(console, store, query).await?,
            ("sessions", "") => sessions::list_page(console, store, query).await?,
            ("sessions", id) => sessions::session_page(console, store, query, id).await?,
            ("budgets", "") => budgets::page(console, store, query).await?,
            ("keys", "") => keys::page(console, store, query).await?,
            ("compactions", "") => output::compactions(console, store, query).await?,
            ("outputs", handle) => output::page(console, store, query, handle).await?,
            ("runs", "") => runs::list_page(console, store, query).await?,
            ("runs", id) => runs::run_page(console, store, query, id).await?,
            _ => return Err(ConsoleError::NotFound(format!("there is no page {}", head.uri.path()))),
        },
        _ => return Err(ConsoleError::MethodNotAllowed),
    };
    Ok(document(page))
}

fn document(page: Markup) -> Response<ConsoleBody> {
    let mut response = document_response(
        "text/html; charset=utf-8",
        visible_controls::with_visible_controls(page.into_string()),
    );
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT_SECURITY_POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}

fn error_page(console: &Console, failure: &ConsoleError) -> Response<ConsoleBody> {
    if matches!(failure, ConsoleError::Unauthorized) {
        return login::redirect("/endmark/login");
    }
    let (_, status) = failure.kind();
    let mut response = document(layout::error_page(console, failure));
    *response.status_mut() = status;
    response
}

/// Redirects the browser to another page.
fn see_other(place: &str) -> Response<ConsoleBody> {
    let mut response = document_response("text/plain", "");
    *response.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(place) = HeaderValue::from_str(place) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}
