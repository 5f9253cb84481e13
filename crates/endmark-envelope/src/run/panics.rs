//! What a panic said, and where.

use std::any::Any;
use std::panic;
use std::sync::{Mutex, PoisonError};

/// Where the last panic was.
static PLACE: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the place of every panic, besides what is done with it already.
pub(super) fn remember() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        *PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
        before(panic);
    }));
}

/// What a panic said, with its place.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "it says nothing".to_owned());
    match PLACE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(place) => format!("panicked at {place}: {text}"),
        None => format!("panicked: {text}"),
    }
}
