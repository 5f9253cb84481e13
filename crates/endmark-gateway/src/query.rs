//! Finds credentials in query parameters, in any spelling of their names.

use std::borrow::Cow;

use endmark_store::SECRET_PREFIX;
use endmark_wire::percent_decode;

/// Names of query parameters with credentials: the system parameters of Google's APIs
/// (<https://cloud.google.com/apis/docs/system-parameters>), with or without `$`, and names of other servers.
/// All are in lower case, with `_` instead of `-`.
const CREDENTIAL_PARAMETERS: [&str; 6] =
    [KEY_PARAMETER, "access_token", "oauth_token", "api_key", "apikey", "subscription_key"];

/// The parameter that contains an API key.
const KEY_PARAMETER: &str = "key";

/// Parameters of the formats' own URLs. They are not secrets. Removing an API version as if it were a secret
/// would damage the name of a model that contains it.
const FORMAT_PARAMETERS: [&str; 2] = ["alt", "api-version"];

/// Returns the decoded API key in a query.
pub(crate) fn find_key(query: Option<&str>) -> Option<String> {
    query?.split('&').find(|pair| parameter_name(pair) == KEY_PARAMETER).map(parameter_value)
}

/// Returns the credentials in a query, under the names that the client used.
pub(crate) fn find_credentials(query: &str) -> impl Iterator<Item = (Cow<'_, str>, String)> {
    let named = query.split('&').map(|pair| (parameter_name(pair), pair));
    named.filter(|(name, _)| is_credential(name)).map(|(name, pair)| (name, parameter_value(pair)))
}

/// Whether a parameter of this name contains a credential. Some servers ignore the case of names.
fn is_credential(name: &str) -> bool {
    CREDENTIAL_PARAMETERS.contains(&name.to_ascii_lowercase().replace('-', "_").as_str())
}

/// Returns a query without its credentials. Returns `None` if nothing else remains.
pub(crate) fn without_credentials(query: &str) -> Option<String> {
    let others: Vec<&str> =
        query.split('&').filter(|pair| !is_credential(&parameter_name(pair)) && !has_own_key(pair)).collect();
    if others.is_empty() { None } else { Some(others.join("&")) }
}

/// Whether a parameter of any name contains one of the gateway's own keys.
fn has_own_key(pair: &str) -> bool {
    percent_decode(pair).contains(SECRET_PREFIX)
}

/// Whether a query can override the method or the headers. Rails and similar frameworks read `_method`, and Google's
/// servers read `$httpMethod` and `$httpHeaders`.
pub(crate) fn overrides_method(query: &str) -> bool {
    has_any_parameter(query, &["_method", "httpmethod", "httpheaders", "x-http-method-override"])
}

/// Whether a query may hide the cost that a response reports. Some system parameters of Google's APIs omit
/// fields. If a parameter is repeated, servers differ in which value they use.
pub(crate) fn hides_cost(query: &str) -> bool {
    let mut names: Vec<String> = query
        .split(['&', ';'])
        .map(|pair| parameter_name(pair).to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
        || has_any_parameter(query, &["fields", "x-goog-fieldmask"])
}

/// Whether a query names a model.
pub(crate) fn names_model(query: &str) -> bool {
    has_any_parameter(query, &["model", "models"])
}

fn has_any_parameter(query: &str, names: &[&str]) -> bool {
    query.split(['&', ';']).any(|pair| names.contains(&parameter_name(pair).to_ascii_lowercase().as_str()))
}

/// Returns the values of a query that may be secrets, both encoded and decoded.
pub(crate) fn secret_values(query: &str) -> impl Iterator<Item = String> {
    query
        .split('&')
        .filter(|pair| !FORMAT_PARAMETERS.contains(&parameter_name(pair).as_ref()))
        .filter_map(|pair| Some(pair.split_once('=')?.1))
        .flat_map(|value| [value.to_owned(), percent_decode(value)])
}

/// Returns the decoded name of a parameter.
fn parameter_name(pair: &str) -> Cow<'_, str> {
    let name = pair.split('=').next().unwrap_or_default();
    let name = if name.contains('%') { Cow::Owned(percent_decode(name)) } else { Cow::Borrowed(name) };
    match name {
        Cow::Borrowed(name) => Cow::Borrowed(name.strip_prefix('$').unwrap_or(name)),
        Cow::Owned(name) => Cow::Owned(name.strip_prefix('$').map(str::to_owned).unwrap_or(name)),
    }
}

fn parameter_value(pair: &str) -> String {
    percent_decode(pair.split_once('=').map_or("", |(_, value)| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_every_spelling_of_its_name() {
        for pair in ["key=SECRET", "k%65y=SECRET", "%6b%65%79=SECRET", "$key=SECRET", "%24key=%53ECRET"] {
            assert_eq!(find_key(Some(&format!("a=b&{pair}"))).as_deref(), Some("SECRET"), "{pair}");
            assert_eq!(without_credentials(&format!("a=%62&{pair}&c")).as_deref(), Some("a=%62&c"), "{pair}");
            assert_eq!(without_credentials(pair), None, "{pair}");
        }
        assert_eq!(without_credentials("access_token=S&oauth%5Ftoken=S"), None);
        assert_eq!(without_credentials("a=b&other=em%5Fsk_1").as_deref(), Some("a=b"));
        assert_eq!(find_key(Some("monkey=x&keys=y&k%2565y=z")), None);
    }

    #[test]
    fn every_credential_is_found_by_its_name() {
        let found: Vec<_> = find_credentials("a=b&$Key=x&API%2Dkey=%79&oauth_token=z&apikeys=1").collect();
        let pairs: Vec<_> = found.iter().map(|(name, value)| (name.as_ref(), value.as_str())).collect();
        assert_eq!(pairs, [("Key", "x"), ("API-key", "y"), ("oauth_token", "z")]);
    }

    #[test]
    fn a_secret_value_is_returned_encoded_and_decoded() {
        let known: Vec<String> = secret_values("api-version=2024-10-21&key=sk%2Da&x&alt=sse").collect();
        assert_eq!(known, ["sk%2Da", "sk-a"]);
    }
}
