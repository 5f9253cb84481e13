//! The parameters of a query in which keys stand, however their names are spelled.

use std::borrow::Cow;

use endmark_store::SECRETS_BEGIN;
use endmark_wire::percent_decoded;

/// Where clients have their credentials in a query: the system parameters of Google's interfaces
/// (<https://cloud.google.com/apis/docs/system-parameters>), before each of which `$` may stand, and what other servers call a
/// key. In small letters, with `_` for `-`.
const CREDENTIALS: [&str; 6] = [KEY, "access_token", "oauth_token", "api_key", "apikey", "subscription_key"];

/// The one of them that is a key of the interface.
const KEY: &str = "key";

/// What the formats' own addresses have in a query: no secrets, and a version may stand in a model's name, too.
const OF_FORMATS: [&str; 2] = ["alt", "api-version"];

/// The key in a query, as it is meant.
pub(crate) fn key_in(query: Option<&str>) -> Option<String> {
    query?.split('&').find(|pair| name_of(pair) == KEY).map(value_of)
}

/// The credentials in a query, each with the name that its client gave it.
pub(crate) fn credentials_in(query: &str) -> impl Iterator<Item = (Cow<'_, str>, String)> {
    let named = query.split('&').map(|pair| (name_of(pair), pair));
    named.filter(|(name, _)| is_credential(name)).map(|(name, pair)| (name, value_of(pair)))
}

/// Whether a parameter of this name holds a credential: some servers ignore the case of names.
fn is_credential(name: &str) -> bool {
    CREDENTIALS.contains(&name.to_ascii_lowercase().replace('-', "_").as_str())
}

/// A query without the credentials in it; none where nothing else is in it.
pub(crate) fn without_credentials(query: &str) -> Option<String> {
    let others: Vec<&str> =
        query.split('&').filter(|pair| !is_credential(&name_of(pair)) && !holds_own_key(pair)).collect();
    if others.is_empty() { None } else { Some(others.join("&")) }
}

/// Whether a key of the gateway's own stands in a parameter, whatever that is called.
fn holds_own_key(pair: &str) -> bool {
    percent_decoded(pair).contains(SECRETS_BEGIN)
}

/// Whether a server may take the request for one of another method, or with other headers, by its query: Rails and its
/// relatives read `_method`, Google's servers `$httpMethod` and `$httpHeaders`.
pub(crate) fn overrides(query: &str) -> bool {
    has_any(query, &["_method", "httpmethod", "httpheaders", "x-http-method-override"])
}

/// Whether a query decides what an answer reports of its cost: the system parameters of Google's interfaces that leave fields
/// out, and one that is there twice, of which servers take different ones.
pub(crate) fn hides_cost(query: &str) -> bool {
    let mut names: Vec<String> = query
        .split(['&', ';'])
        .map(|pair| name_of(pair).to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1]) || has_any(query, &["fields", "x-goog-fieldmask"])
}

/// Whether a query names a model.
pub(crate) fn names_model(query: &str) -> bool {
    has_any(query, &["model", "models"])
}

fn has_any(query: &str, names: &[&str]) -> bool {
    query.split(['&', ';']).any(|pair| names.contains(&name_of(pair).to_ascii_lowercase().as_str()))
}

/// The values in a query that may be secrets, as they stand there and as they are meant.
pub(crate) fn secret_values(query: &str) -> impl Iterator<Item = String> {
    query
        .split('&')
        .filter(|pair| !OF_FORMATS.contains(&name_of(pair).as_ref()))
        .filter_map(|pair| Some(pair.split_once('=')?.1))
        .flat_map(|value| [value.to_owned(), percent_decoded(value)])
}

/// The name of a parameter as a server reads it.
fn name_of(pair: &str) -> Cow<'_, str> {
    let name = pair.split('=').next().unwrap_or_default();
    let name = if name.contains('%') { Cow::Owned(percent_decoded(name)) } else { Cow::Borrowed(name) };
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.strip_prefix('$').unwrap_or(name)),
        Cow::Owned(name) => Cow::Owned(name.strip_prefix('$').map(str::to_owned).unwrap_or(name)),
    }
}

fn value_of(pair: &str) -> String {
    percent_decoded(pair.split_once('=').map_or("", |(_, value)| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_however_its_name_is_spelled() {
        for pair in ["key=SECRET", "k%65y=SECRET", "%6b%65%79=SECRET", "$key=SECRET", "%24key=%53ECRET"] {
            assert_eq!(key_in(Some(&format!("a=b&{pair}"))).as_deref(), Some("SECRET"), "{pair}");
            assert_eq!(without_credentials(&format!("a=%62&{pair}&c")).as_deref(), Some("a=%62&c"), "{pair}");
            assert_eq!(without_credentials(pair), None, "{pair}");
        }
        assert_eq!(without_credentials("access_token=S&oauth%5Ftoken=S"), None);
        assert_eq!(without_credentials("a=b&other=em%5Fsk_1").as_deref(), Some("a=b"));
        assert_eq!(key_in(Some("monkey=x&keys=y&k%2565y=z")), None);
    }

    #[test]
    fn every_credential_is_found_by_its_name() {
        let found: Vec<_> = credentials_in("a=b&$Key=x&API%2Dkey=%79&oauth_token=z&apikeys=1").collect();
        let pairs: Vec<_> = found.iter().map(|(name, value)| (name.as_ref(), value.as_str())).collect();
        assert_eq!(pairs, [("Key", "x"), ("API-key", "y"), ("oauth_token", "z")]);
    }

    #[test]
    fn a_value_is_known_as_it_stands_and_as_it_is_meant() {
        let known: Vec<String> = secret_values("api-version=2024-10-21&key=sk%2Da&x&alt=sse").collect();
        assert_eq!(known, ["sk%2Da", "sk-a"]);
    }
}
