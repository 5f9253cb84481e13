//! A text that grows as long as its reply does.

/// Bytes beyond which a text is given room by eighths. A string by itself doubles: a thousand replies that each wait for
/// a slow client would hold twice what has come of them.
const DOUBLED: usize = 16 * 1024;

/// Appends to a text that is kept until its reply ends. Each byte is moved eight times at most, on the average.
pub(crate) fn append(text: &mut String, more: &str) {
    let capacity = text.capacity();
    if capacity >= DOUBLED && text.len() + more.len() > capacity {
        text.reserve_exact(more.len().max(capacity / 8));
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn a_long_text_has_little_room_that_it_does_not_need() {
        let (mut text, mut moves, mut capacity) = (String::new(), 0, 0);
        for piece in 0..20_000 {
            append(&mut text, &"word ".repeat(1 + piece % 30));
            if text.capacity() != capacity {
                capacity = text.capacity();
                moves += text.len();
            }
            assert!(capacity <= super::DOUBLED * 2 || capacity <= text.len() + text.len() / 7, "{capacity}");
        }
        assert!(moves <= 9 * text.len(), "{moves} bytes were moved for {}", text.len());
        assert!(text.ends_with("word ") && text.len() > 1_000_000);
    }
}
