//! Checks requests whose key admits only some models, and requests to which a budget applies.
//!
//! All servers must interpret such a request in the same way: its path, its method, and the fields of the body that
//! determine the cost. Without a list of models and without a budget, nothing is checked.

use endmark_wire::deciding::{self, Restrictions, UnreliableField};
use endmark_wire::json::{Kind, Value};
use endmark_wire::paths::{self, ModelLocation, PathCost, PathUse, TokenService};
use endmark_wire::{percent_decode, request as wire};
use http::{HeaderMap, Method, Request, header};

use crate::gateway::Gateway;
use crate::keys::OwnKey;
use crate::keys::key_refusal::KeyRefusal;
use crate::query;
use crate::refusals::Refusal;
use crate::request_body::IncomingBody;

/// The restrictions that apply to one request.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    gateway: &'a Gateway,
    /// The key, if it permits only some models.
    restricted_key: Option<&'a OwnKey>,
    limits: Restrictions,
}

/// What to check in a request that is not for a reply.
pub(crate) enum PassThroughRule {
    /// The request passes unchecked.
    Unchecked,
    /// The request passes if its body names only permitted models.
    CheckModels(PathUse),
    /// The request passes if its body names only permitted models. Its cost is counted.
    CheckAndCount(PathUse, TokenService),
}

impl<'a> Bounds<'a> {
    /// Returns the restrictions for a request with this key.
    pub(crate) fn new(gateway: &'a Gateway, key: Option<&'a OwnKey>) -> Self {
        let list = key.filter(|key| key.has_model_list());
        let budget = gateway.budgets.apply_to(key.map(OwnKey::limits).unwrap_or_default());
        Self { gateway, restricted_key: list, limits: Restrictions { models: list.is_some(), budget } }
    }

    /// Decides from the head of a request whether it passes, and what to check.
    ///
    /// # Errors
    /// [`Refusal::BadRequest`] if servers might interpret it differently. [`Refusal::NotCounted`] or
    /// [`Refusal::Key`] if the cost or the model is unknown.
    pub(crate) fn pass_through_rule(
        &self,
        path: &str,
        request: &Request<IncomingBody>,
    ) -> Result<PassThroughRule, Refusal> {
        if self.limits == Restrictions::default() {
            return Ok(PassThroughRule::Unchecked);
        }
        let (method, query) = (request.method(), request.uri().query());
        if query.is_some_and(query::overrides_method) {
            let message = "a query that overrides the method is not forwarded where a budget or a list of models applies: \
                           send the request with the method that it is for";
            return Err(Refusal::BadRequest(message.to_owned()));
        }
        // Requests with these methods do not run a model.
        if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::DELETE) {
            if request.body().is_empty() {
                return Ok(PassThroughRule::Unchecked);
            }
            return Err(Refusal::BadRequest(format!(
                "a {method} with a body is not forwarded where a budget or a list of models applies: send it without one"
            )));
        }
        let hides_fields = request.headers().contains_key("x-goog-fieldmask");
        if self.limits.budget && (hides_fields || query.is_some_and(query::hides_cost)) {
            let message = "a request that leaves fields of its answer out, or has a parameter of its query twice, is not \
                           forwarded where a budget applies: the cost could not be counted";
            return Err(Refusal::BadRequest(message.to_owned()));
        }
        if self.restricted_key.is_some() && query.is_some_and(query::names_model) {
            let message =
                "the key is for some models alone, and the query names a model: name it in the body";
            return Err(Refusal::BadRequest(message.to_owned()));
        }
        let path_use = paths::read(method.as_str(), path, query)
            .map_err(|ambiguous| Refusal::BadRequest(ambiguous.to_string()))?;
        self.rule_for_path(path, path_use)
    }

    fn rule_for_path(&self, path: &str, known: PathUse) -> Result<PassThroughRule, Refusal> {
        if let Some(key) = self.restricted_key
            && known.model == ModelLocation::InFile
        {
            return Err(KeyRefusal::Path { name: key.name(), path: path.to_owned() }.into());
        }
        match known.cost {
            // The body is checked after it has been read.
            PathCost::Reply => return Ok(PassThroughRule::Unchecked),
            PathCost::Counted(service) if self.limits.budget => {
                return Ok(PassThroughRule::CheckAndCount(known, service));
            }
            PathCost::Free if known.model == ModelLocation::Unused => return Ok(PassThroughRule::Unchecked),
            PathCost::Uncounted(kind) if self.limits.budget => self.check_uncounted(kind, path)?,
            PathCost::Uncounted(paths::UNKNOWN_COST)
                if !self.gateway.settings.budget.passes_unknown_paths =>
            {
                let name = self.restricted_key.map(OwnKey::name).unwrap_or_default();
                return Err(KeyRefusal::Path { name, path: path.to_owned() }.into());
            }
            PathCost::Counted(_) | PathCost::Free | PathCost::Uncounted(_) => {}
        }
        Ok(if self.restricted_key.is_some() {
            PassThroughRule::CheckModels(known)
        } else {
            PassThroughRule::Unchecked
        })
    }

    /// Refuses a path whose cost is not counted, or logs that the request passes.
    fn check_uncounted(&self, kind: &'static str, path: &str) -> Result<(), Refusal> {
        let suggestion = paths::suggested_path(path);
        if !self.gateway.settings.budget.passes_unknown_paths {
            return Err(Refusal::NotCounted { path: path.to_owned(), suggestion });
        }
        if self.gateway.metrics.note_uncounted(kind, path) {
            let suggestion = suggestion.unwrap_or_default();
            tracing::warn!(
                kind,
                path,
                suggestion,
                "a request with an unknown cost is forwarded although a budget applies"
            );
        }
        Ok(())
    }

    /// Checks whether a request for a reply is unambiguous, and whether the key permits its model.
    ///
    /// # Errors
    /// [`Refusal::BadRequest`] if servers might interpret it differently. [`Refusal::Key`] if it names a model that
    /// the key does not permit.
    pub(crate) fn check(&self, request: &wire::Request, headers: &HeaderMap) -> Result<(), Refusal> {
        if self.limits == Restrictions::default() {
            return Ok(());
        }
        check_content_type(headers)?;
        request.check_deciding(self.limits)?;
        let Some(key) = self.restricted_key else { return Ok(()) };
        let in_path = request.address().model.as_deref().map(|model| Some(percent_decode(model).into()));
        Ok(key.check_models(in_path.into_iter().chain(request.models_in_body()))?)
    }

    /// Checks the body of a request that is not for a reply. Returns the model of the request.
    ///
    /// # Errors
    /// Like [`Bounds::check`], and [`Refusal::BadRequest`] if the body is not JSON.
    pub(crate) fn check_pass_through_body(
        &self,
        path_use: &PathUse,
        body: &[u8],
        headers: &HeaderMap,
    ) -> Result<String, Refusal> {
        let fields = match path_use.cost {
            PathCost::Counted(service) => service.fields,
            _ => paths::NON_GENERATING,
        };
        let root = Value::parse(body).ok().filter(|root| root.kind() == Kind::Object);
        match root {
            Some(root) => {
                check_content_type(headers)?;
                deciding::check(root, fields, self.limits)?;
            }
            None if self.limits.budget && matches!(path_use.cost, PathCost::Counted(_)) => {
                let message =
                    "the body is not a JSON object, and a budget applies: send one, encoded as UTF-8";
                return Err(Refusal::BadRequest(message.to_owned()));
            }
            None => {}
        }
        let mut models_of_items = root.into_iter().flat_map(|root| deciding::item_models(root, fields));
        let path_model = path_use.model_in_path.as_deref();
        let is_path_model =
            |model: &str| path_model.is_some_and(|own| model.strip_prefix("models/").unwrap_or(model) == own);
        if !models_of_items.all(|model| model.as_deref().is_some_and(is_path_model)) {
            let message = "an item of the list names another model than the path, and a budget or a list of models applies: \
                           send it to the path of its own model";
            return Err(Refusal::BadRequest(message.to_owned()));
        }
        let in_path = path_model.map(|model| Some(model.into()));
        let named: Vec<_> = in_path.into_iter().chain(root.into_iter().flat_map(deciding::models)).collect();
        if let Some(key) = self.restricted_key {
            key.check_models(named.iter().cloned())?;
        }
        Ok(named.into_iter().next().flatten().unwrap_or_default().into_owned())
    }
}

impl From<UnreliableField> for Refusal {
    fn from(why: UnreliableField) -> Self {
        Self::BadRequest(why.to_string())
    }
}

/// Checks that the content type is JSON in UTF-8. With another type, a server could read the same bytes as a form, or
/// in another character set.
fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    let is_plain = match (kinds.next(), kinds.next()) {
        (None, _) => true,
        (Some(kind), None) => kind.to_str().is_ok_and(is_json_in_utf8),
        (Some(_), Some(_)) => false,
    };
    if is_plain {
        return Ok(());
    }
    let message = "the content type is not JSON in UTF-8, and a budget or a list of models applies: send the body with \
                   `content-type: application/json`";
    Err(Refusal::BadRequest(message.to_owned()))
}

fn is_json_in_utf8(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    let mut parts = kind.split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|kind| kind == "application/json" || kind.ends_with("+json"));
    let is_utf8 = |part: &str| match part.split_once('=') {
        Some((name, value)) if name.trim() == "charset" => {
            matches!(value.trim().trim_matches('"'), "utf-8" | "utf8")
        }
        _ => !part.contains("charset"),
    };
    is_json && parts.all(is_utf8)
}
