//! Grows the capacity of a text that is stored while its reply arrives.

/// From this capacity in bytes, a text grows in large steps.
const LONG_TEXT_BYTES: usize = 16 * 1024;

/// Minimum capacity of a long text, in bytes.
///
/// Common allocators give an allocation of this size its own pages, which the system provides only when they
/// are written. Therefore unused capacity costs nothing, and growing it copies nothing. If a thousand replies
/// grew in small steps, they would fragment the memory.
const MIN_LONG_TEXT_CAPACITY_BYTES: usize = 128 * 1024;

/// Appends to a text that is stored until its reply ends.
pub(crate) fn append(text: &mut String, more: &str) {
    let capacity = text.capacity();
    if capacity >= LONG_TEXT_BYTES && text.len() + more.len() > capacity {
        text.reserve(more.len().max(MIN_LONG_TEXT_CAPACITY_BYTES.saturating_sub(text.len())));
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn a_growing_text_is_rarely_reallocated() {
        let (mut text, mut moves, mut capacity) = (String::new(), 0, 0);
        for piece in 0..20_000 {
            append(&mut text, &"word ".repeat(1 + piece % 30));
            if text.capacity() != capacity {
                capacity = text.capacity();
                moves += usize::from(text.len() > super::LONG_TEXT_BYTES);
            }
            assert!(
                capacity <= 2 * super::LONG_TEXT_BYTES || capacity >= super::MIN_LONG_TEXT_CAPACITY_BYTES,
                "{capacity}"
            );
        }
        assert!(text.ends_with("word ") && text.len() > 1_000_000);
        assert!(moves <= 5, "it was moved {moves} times");
    }
}
