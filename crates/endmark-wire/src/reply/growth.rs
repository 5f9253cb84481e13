//! A text that grows as long as its reply does.

/// A text of more bytes is given room for many at once.
const LONG_TEXT_BYTES: usize = 16 * 1024;

/// The least room of a long text, in bytes. So much has pages of its own in common allocators, which the system gives
/// one by one as they are written to: room that is not needed costs nothing, and more of it moves nothing. A thousand
/// replies that each grow a little beside the others would leave behind holes, in which none of them fits any more.
const MIN_ROOM_BYTES: usize = 128 * 1024;

/// Appends to a text that is kept until its reply ends.
pub(crate) fn append(text: &mut String, more: &str) {
    let capacity = text.capacity();
    if capacity >= LONG_TEXT_BYTES && text.len() + more.len() > capacity {
        text.reserve(more.len().max(MIN_ROOM_BYTES.saturating_sub(text.len())));
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn a_long_text_is_hardly_ever_moved() {
        let (mut text, mut moves, mut capacity) = (String::new(), 0, 0);
        for piece in 0..20_000 {
            append(&mut text, &"word ".repeat(1 + piece % 30));
            if text.capacity() != capacity {
                capacity = text.capacity();
                moves += usize::from(text.len() > super::LONG_TEXT_BYTES);
            }
            assert!(
                capacity <= 2 * super::LONG_TEXT_BYTES || capacity >= super::MIN_ROOM_BYTES,
                "{capacity}"
            );
        }
        assert!(text.ends_with("word ") && text.len() > 1_000_000);
        assert!(moves <= 5, "it was moved {moves} times");
    }
}
