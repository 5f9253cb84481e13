//! The message and the location of a panic.

use std::any::Any;
use std::panic;
use std::sync::{Mutex, PoisonError};

/// The location of the last panic in the source.
static LAST_PANIC_LOCATION: Mutex<Option<String>> = Mutex::new(None);

/// Records the location of every panic, in addition to what the existing hook does.
pub(super) fn record_panic_locations() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string);
        *LAST_PANIC_LOCATION.lock().unwrap_or_else(PoisonError::into_inner) = place;
        before(panic);
    }));
}

/// Returns the message and the location of a panic.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "it says nothing".to_owned());
    match LAST_PANIC_LOCATION.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(place) => format!("panicked at {place}: {text}"),
        None => format!("panicked: {text}"),
    }
}
