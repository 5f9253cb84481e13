//! The sums as CSV (RFC 4180), for a spreadsheet.

use endmark_console::reports::usage::{UsageKey, UsageSum};

pub(super) fn render_csv(by: UsageKey, rows: &[UsageSum]) -> String {
    let mut text = format!(
        "{},calls,prompt_tokens,cached_tokens,cache_write_tokens,completion_tokens,reasoning_tokens,estimated_calls,\
         unpriced_calls,usd\r\n",
        by.name()
    );
    for UsageSum { key, total, .. } in rows {
        let counts = [
            total.calls,
            total.prompt_tokens,
            total.cached_tokens,
            total.cache_write_tokens,
            total.completion_tokens,
            total.reasoning_tokens,
            total.estimated_calls,
            total.unpriced_calls,
        ];
        text.push_str(&quote_key(key));
        for count in counts {
            text.push(',');
            text.push_str(&count.to_string());
        }
        text.push(',');
        // An unknown price is an empty field, because 0 would be a price.
        text.push_str(total.usd.as_deref().unwrap_or_default());
        text.push_str("\r\n");
    }
    text
}

/// Quotes a model's name, which is untrusted text.
///
/// A spreadsheet would treat a name that begins with `=`, `+`, `-`, `@`, a tab or a carriage return as a formula.
fn quote_key(key: &str) -> String {
    let formula = if key.starts_with(['=', '+', '-', '@', '\t', '\r']) { "'" } else { "" };
    if formula.is_empty() && !key.contains([',', '"', '\n', '\r']) {
        return key.to_owned();
    }
    format!("\"{formula}{}\"", key.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::quote_key;

    #[test]
    fn a_csv_field_cannot_be_a_formula() {
        for (key, field) in
            [("gpt-5", "gpt-5"), ("a,b", "\"a,b\""), ("a\"b", "\"a\"\"b\""), ("=1+1", "\"'=1+1\""), ("", "")]
        {
            assert_eq!(quote_key(key), field);
        }
    }
}
