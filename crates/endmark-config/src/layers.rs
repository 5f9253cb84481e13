//! Combines settings from layers. A later layer overrides an earlier one, and each value keeps its origin.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use endmark_failure::nearest;
use endmark_gateway::{BaseUrl, PREFILLS, Secret, UnfitFallback, UnusablePattern};
use endmark_runs::AGENT_VARIABLES;
use endmark_setting::{ExpectedValue, RawSetting};
use endmark_store::StoreLocation;
use endmark_wire::provider::Provider;

use super::budget::OnStoreError;
use super::environment::{self, Environment};
use super::error::ConfigError;
use super::keys::{self, KEYS, Key};
use super::prices::{PRICE_KEYS, Price};
use super::provenance::{Origin, Provenance};
use super::secret_source::SecretSource;
use super::settings::{ProxyChoice, Schema, Settings, Upstream};

/// The keys of an upstream, in display order.
pub(crate) const UPSTREAM_KEYS: [&str; 13] = [
    "format",
    "base_url",
    "api_key",
    "for_paths",
    "for_models",
    "for_headers",
    "prefill",
    "fallback",
    "model",
    "summary_model",
    "endmark",
    "proxy",
    "ca_file",
];

/// The settings while the layers are applied one after another.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub(crate) settings: Settings,
    pub(crate) provenance: Provenance,
    /// The folder that replaces `~` at the start of the store's path.
    pub(crate) home: Option<PathBuf>,
}

impl Layers {
    /// Expands `~` in the store's path. The documentation uses `~`, but no shell expands it in a file or after
    /// `sqlite:`.
    fn expand_home(&self, name: &str, given: &RawSetting) -> RawSetting {
        let text = given.text().ok().filter(|_| name == "store");
        let below = text.as_deref().and_then(|text| text.trim().strip_prefix("sqlite:~/"));
        match (below, &self.home) {
            (Some(below), Some(home)) => RawSetting::Text(format!("sqlite:{}", home.join(below).display())),
            _ => given.clone(),
        }
    }

    /// Sets one key by its full name. Paths are relative to `folder`.
    pub(crate) fn set(
        &mut self,
        name: &str,
        given: &RawSetting,
        origin: Origin,
        folder: Option<&Path>,
    ) -> Result<(), ConfigError> {
        // A model's name may contain dots.
        let price = name.strip_prefix("prices.").and_then(|rest| rest.rsplit_once('.'));
        let price = price.filter(|(pattern, key)| !pattern.is_empty() && PRICE_KEYS.contains(key));
        let expected = match name.split('.').collect::<Vec<_>>()[..] {
            ["prices", ..] if price.is_some() => {
                price.map_or(Ok(()), |(pattern, key)| self.price_mut(pattern).set(key, given))
            }
            ["upstreams", upstream, key] if UPSTREAM_KEYS.contains(&key) => {
                check_name(upstream, "an upstream", &origin)?;
                set_upstream(self.upstream_mut(upstream), key, given, folder)
            }
            ["schemas", schema] => {
                check_name(schema, "a schema", &origin)?;
                self.set_schema(schema, given, folder)
            }
            _ => match keys::find_key(name) {
                Some(key) => {
                    let given = self.expand_home(name, given);
                    let set = key.set(&mut self.settings, &given);
                    if let Some(folder) = folder {
                        key.resolve_path(&mut self.settings, folder);
                    }
                    set
                }
                None if is_section(name) && matches!(given, RawSetting::Other("table")) => return Ok(()),
                None => return Err(unknown_key(name, given, origin)),
            },
        };
        expected.map_err(|expected| ConfigError::InvalidValue {
            key: name.to_owned(),
            origin: origin.clone(),
            expected,
        })?;
        if name == "store" && self.settings.files.store.postgres().is_none() {
            let path = resolve_path(folder, self.settings.files.store.path());
            self.settings.files.store = StoreLocation::sqlite(path);
        }
        self.provenance.set(name, origin);
        Ok(())
    }

    /// Sets the values from the environment and collects errors. Returns a warning for each unknown variable.
    pub(crate) fn set_environment(
        &mut self,
        environment: &Environment,
        faults: &mut Vec<ConfigError>,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        for (variable, name) in environment::VARIABLE_ALIASES {
            if let Some(value) = environment.get(variable) {
                let origin = Origin::Environment(variable.to_owned());
                faults.extend(self.set(name, &RawSetting::Untyped(value.to_owned()), origin, None).err());
            }
        }
        for (variable, value) in environment.with_prefix(environment::VARIABLE_PREFIX) {
            let origin = Origin::Environment(variable.to_owned());
            let given = RawSetting::Untyped(value.to_owned());
            let is_other_name = environment::VARIABLE_ALIASES.iter().any(|(other, _)| *other == variable);
            if is_other_name || AGENT_VARIABLES.contains(&variable) {
                continue;
            }
            if let Some(name) = self.variable_key(variable) {
                faults.extend(self.set(&name, &given, origin, None).err());
            } else if ![environment::CONFIG_FILE_VARIABLE, environment::LOG].contains(&variable) {
                let known = KEYS
                    .iter()
                    .map(Key::variable)
                    .chain([environment::CONFIG_FILE_VARIABLE, environment::LOG].map(str::to_owned));
                let nearest = nearest(variable, known);
                let hint = nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
                warnings
                    .push(format!("the environment variable `{variable}` means nothing to Endmark{hint}"));
            }
        }
        warnings
    }

    /// Adds the defaults that depend on other values, and checks the complete settings. Returns the errors.
    pub(crate) fn finish(&mut self, environment: &Environment) -> Vec<ConfigError> {
        self.settings.has_own_upstreams = !self.settings.upstreams.is_empty();
        if self.settings.upstreams.is_empty() {
            // Use the gateway's default upstreams. Environment variables and flags refer to them by name.
            let public = self.settings.gateway.upstreams.clone();
            self.settings.upstreams.extend(public.into_iter().map(|known| Upstream {
                base_url: Some(known.base_url),
                format: known.provider,
                prefill: known.prefill,
                ..Upstream::new(&known.name)
            }));
        }
        let upstreams = &self.settings.upstreams;
        let mut faults: Vec<_> =
            upstreams.iter().filter_map(|upstream| self.check_upstream(upstream).err()).collect();
        faults.extend(self.check_prices().err());
        faults.extend(self.check_tls().err());
        faults.extend(self.finish_store(environment));
        faults
    }

    fn check_upstream(&self, upstream: &Upstream) -> Result<(), ConfigError> {
        if upstream.base_url.is_some() {
            return self.check_fallback(upstream);
        }
        let known_keys = UPSTREAM_KEYS
            .iter()
            .map(|key| self.provenance.origin(&format!("upstreams.{}.{key}", upstream.name)));
        let origin =
            known_keys.into_iter().find(|origin| *origin != Origin::Default).unwrap_or(Origin::Default);
        Err(ConfigError::NoBaseUrl { name: upstream.name.clone(), origin })
    }

    /// Sets the journal and the password of a PostgreSQL store. Returns an error for each unusable setting.
    fn finish_store(&mut self, environment: &Environment) -> Vec<ConfigError> {
        let invalid = |key: &str, expected: String| {
            let (key, origin) = (key.to_owned(), self.provenance.origin(key));
            ConfigError::InvalidValue { key, origin, expected }
        };
        let files = &self.settings.files;
        // A flag may select another store for a single command.
        let is_named_by_flag = matches!(self.provenance.origin("store"), Origin::Flag(_));
        let Some(postgres) = files.store.postgres() else {
            if files.journal.is_none() || is_named_by_flag {
                return Vec::new();
            }
            return vec![invalid("journal", "left out: only a PostgreSQL store has a journal".to_owned())];
        };
        let mut faults = Vec::new();
        if files.journal.is_none() {
            let expected = "a SQLite file, or set `journal`, a SQLite file of this instance alone";
            faults.push(invalid("store", expected.to_owned()));
        }
        if let Some(missing) = postgres.authority_file().filter(|file| !file.is_file()) {
            let missing = missing.display();
            faults.push(invalid(
                "store",
                format!("a URL whose `sslrootcert` is a PEM file: there is no file `{missing}`"),
            ));
        }
        let password = match &files.store_password {
            Some(source) => match source.read(environment, "the password of the database") {
                Ok(password) => Some(password.reveal().to_owned()),
                Err(error) => {
                    faults.push(invalid("store_password", format!("a password: {error}")));
                    None
                }
            },
            None => environment.get("PGPASSWORD").filter(|_| !postgres.has_password()).map(str::to_owned),
        };
        if self.provenance.origin("budget.on_store_error") == Origin::Default {
            self.settings.budget.on_store_error = OnStoreError::Closed;
        }
        let files = &mut self.settings.files;
        let mut store = files.store.clone().with_journal(files.journal.clone().unwrap_or_default());
        if let Some(password) = password {
            store = store.with_password(&password);
        }
        files.store = store;
        faults
    }

    /// Checks that each price is complete. With only one rate, sums would be too small.
    fn check_prices(&self) -> Result<(), ConfigError> {
        let missing = |price: &Price| price.missing_key().map(|key| (price.pattern.clone(), key));
        let Some((pattern, missing)) = self.settings.prices.iter().find_map(missing) else { return Ok(()) };
        let known_keys = PRICE_KEYS.iter().map(|key| format!("prices.{pattern}.{key}"));
        let known_keys = known_keys
            .map(|key| (self.provenance.origin(&key), key))
            .find(|(origin, _)| *origin != Origin::Default);
        let (origin, key) = known_keys.unwrap_or((Origin::Default, format!("prices.{pattern}.{missing}")));
        let expected = format!("set together with `{missing}`, in dollars per million tokens");
        Err(ConfigError::InvalidValue { key, origin, expected })
    }

    /// Checks that the certificate and its key are both set, or neither.
    fn check_tls(&self) -> Result<(), ConfigError> {
        let (given, missing) = match (&self.settings.tls.certificate, &self.settings.tls.key) {
            (Some(_), None) => ("tls.certificate", "tls.key"),
            (None, Some(_)) => ("tls.key", "tls.certificate"),
            _ => return Ok(()),
        };
        let expected = format!("set together with `{missing}`, which is missing");
        Err(ConfigError::InvalidValue {
            key: given.to_owned(),
            origin: self.provenance.origin(given),
            expected,
        })
    }

    /// Checks that the fallback is another upstream in this configuration with the same format, because it receives
    /// the unchanged request.
    fn check_fallback(&self, upstream: &Upstream) -> Result<(), ConfigError> {
        let is_candidate = |other: &&Upstream| other.name != upstream.name && other.format == upstream.format;
        let others = || self.settings.upstreams.iter().filter(is_candidate);
        let Some(fallback) = &upstream.fallback else { return Ok(()) };
        if let Some(other) = others().find(|other| other.name == *fallback) {
            let unfit = |base_url| UnfitFallback::check(base_url, other.format, other.model.as_deref());
            let unfit = other.base_url.as_ref().and_then(unfit);
            return unfit.map_or(Ok(()), |unfit| {
                let key = format!("upstreams.{fallback}.{}", unfit.key());
                let origin = self.provenance.origin(&key);
                Err(ConfigError::InvalidValue { key, origin, expected: unfit.to_string() })
            });
        }
        let names: Vec<String> = others().map(|other| format!("`{}`", other.name)).collect();
        let expected = match names.as_slice() {
            [] => "the name of another upstream of the same `format`, but none has this name".to_owned(),
            names => format!("the name of another upstream of the same `format`: {}", names.join(", ")),
        };
        let key = format!("upstreams.{}.fallback", upstream.name);
        Err(ConfigError::InvalidValue { origin: self.provenance.origin(&key), key, expected })
    }

    /// Returns the full name of the key that this variable sets.
    fn variable_key(&self, variable: &str) -> Option<String> {
        if let Some(key) = keys::find_by_variable(variable) {
            return Some(key.name().to_owned());
        }
        if let Some(schema) = variable.strip_prefix(environment::SCHEMA_VARIABLE_PREFIX) {
            return Some(format!("schemas.{}", schema.to_lowercase()));
        }
        let rest = variable.strip_prefix(environment::UPSTREAMS)?;
        let ends_with = |key: &&str| {
            rest.strip_suffix(&format!("_{}", key.to_uppercase())).is_some_and(|name| !name.is_empty())
        };
        let key = UPSTREAM_KEYS.into_iter().find(ends_with)?;
        let name = &rest[..rest.len() - key.len() - 1];
        let matches_variable =
            |upstream: &&Upstream| upstream.name.replace('-', "_").eq_ignore_ascii_case(name);
        let existing =
            self.settings.upstreams.iter().find(matches_variable).map(|upstream| upstream.name.clone());
        Some(format!("upstreams.{}.{key}", existing.unwrap_or_else(|| name.to_lowercase())))
    }

    fn upstream_mut(&mut self, name: &str) -> &mut Upstream {
        let upstreams = &mut self.settings.upstreams;
        let index = upstreams.iter().position(|upstream| upstream.name == name).unwrap_or_else(|| {
            upstreams.push(Upstream::new(name));
            upstreams.len() - 1
        });
        &mut upstreams[index]
    }

    fn price_mut(&mut self, pattern: &str) -> &mut Price {
        let prices = &mut self.settings.prices;
        let index = prices.iter().position(|price| price.pattern == pattern).unwrap_or_else(|| {
            prices.push(Price { pattern: pattern.to_owned(), ..Price::default() });
            prices.len() - 1
        });
        &mut prices[index]
    }

    fn set_schema(
        &mut self,
        name: &str,
        given: &RawSetting,
        folder: Option<&Path>,
    ) -> Result<(), ExpectedValue> {
        let path = resolve_path(folder, given.text().map_err(|_| "the path of a JSON Schema")?.as_ref());
        self.settings.schemas.retain(|schema| schema.name != name);
        self.settings.schemas.push(Schema { name: name.to_owned(), path });
        Ok(())
    }
}

fn set_upstream(
    upstream: &mut Upstream,
    key: &str,
    given: &RawSetting,
    folder: Option<&Path>,
) -> Result<(), ExpectedValue> {
    match key {
        "format" => upstream.format = parse_format(given)?,
        "base_url" => upstream.base_url = Some(parse_base_url(&given.text()?)?),
        "for_paths" => {
            let names = given.names().unwrap_or_default();
            if let Some(path) = names.iter().find(|path| !path.starts_with(['/', '*'])) {
                return Err(format!(
                    "a list of paths, like [\"/v1/embeddings\"]; `{path}` begins with no `/`"
                ));
            }
            if let Some(path) = names.iter().find(|path| path.contains(['?', '#'])) {
                let alone = path.split(['?', '#']).next().unwrap_or_default();
                return Err(format!(
                    "a list of paths, like [\"/v1/embeddings\"]; a path has no query and no fragment, so that \
                     nothing would meet `{path}`: write `{alone}`"
                ));
            }
            upstream.conditions.paths = parse_patterns(given, "/v1/embeddings")?;
        }
        "for_models" => upstream.conditions.models = parse_patterns(given, "qwen*")?,
        "for_headers" => upstream.conditions.headers = parse_patterns(given, "x-team: blue")?,
        "prefill" => upstream.prefill = PREFILLS.parse(given)?,
        "fallback" => upstream.fallback = given.optional_text()?,
        "model" => upstream.model = given.optional_text()?,
        "summary_model" => upstream.summary_model = given.optional_text()?,
        "endmark" => upstream.endmark = given.flag()?,
        "proxy" => upstream.proxy = parse_proxy(given, folder)?,
        "ca_file" => {
            upstream.ca_file = given.optional_text()?.map(|path| resolve_path(folder, Path::new(&path)));
        }
        _ => {
            upstream.api_key = Some(match secret_reference(given, folder) {
                Some(source) => source,
                None => SecretSource::Value(Secret::new(
                    given
                        .text()
                        .map_err(|_| "a string, { env = \"NAME\" } or { file = \"PATH\" }".to_owned())?,
                )),
            });
        }
    }
    Ok(())
}

/// Parses the name of a provider's format.
fn parse_format(given: &RawSetting) -> Result<&'static Provider, ExpectedValue> {
    let name = given.text().unwrap_or_default();
    let all = Provider::all();
    all.iter().find(|provider| provider.name == name.trim()).copied().ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|provider| format!("`{}`", provider.name)).collect();
        format!("one of {}", names.join(", "))
    })
}

/// Parses request patterns. `example` is a valid pattern for error messages.
fn parse_patterns<P: FromStr<Err = UnusablePattern>>(
    given: &RawSetting,
    example: &str,
) -> Result<Vec<P>, ExpectedValue> {
    let texts = given.names().map_err(|_| format!("a list of patterns, like [\"{example}\"]"))?;
    let parsed = texts.iter().map(|text| text.parse()).collect::<Result<Vec<P>, _>>();
    parsed.map_err(|error| format!("a list of patterns, like [\"{example}\"] ({error})"))
}

/// Returns where a secret is stored, if the value is a reference.
fn secret_reference(given: &RawSetting, folder: Option<&Path>) -> Option<SecretSource> {
    match given {
        RawSetting::FromEnvironment(name) => Some(SecretSource::Environment(name.clone())),
        RawSetting::FromFile(path) => Some(SecretSource::File(resolve_path(folder, Path::new(path)))),
        _ => None,
    }
}

fn parse_proxy(given: &RawSetting, folder: Option<&Path>) -> Result<ProxyChoice, ExpectedValue> {
    if let Some(source) = secret_reference(given, folder) {
        return Ok(ProxyChoice::Referenced(source));
    }
    match given.text().unwrap_or_default().trim() {
        "environment" => Ok(ProxyChoice::Environment),
        "none" => Ok(ProxyChoice::None),
        url => url.parse().map(ProxyChoice::Named).map_err(|_| {
            "`environment`, `none`, or the URL of an HTTP proxy, like \"http://proxy.example:3128\"; with a password \
             better { env = \"NAME\" } or { file = \"PATH\" }"
                .to_owned()
        }),
    }
}

/// Parses the base URL of an upstream. The error describes what is expected.
pub fn parse_base_url(text: &str) -> Result<BaseUrl, ExpectedValue> {
    let url = text.trim().parse();
    url.map_err(|_| "an http or https URL without query, like \"http://127.0.0.1:8080/v1\"".to_owned())
}

fn check_name(name: &str, what: &'static str, origin: &Origin) -> Result<(), ConfigError> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || !name.bytes().all(is_allowed) {
        return Err(ConfigError::InvalidName { name: name.to_owned(), what, origin: origin.clone() });
    }
    Ok(())
}

/// Whether this is the name of a section.
fn is_section(name: &str) -> bool {
    let is_below = |key: &Key| key.name().strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    ["upstreams", "schemas", "prices"].contains(&name) || KEYS.iter().any(is_below)
}

fn unknown_key(name: &str, given: &RawSetting, origin: Origin) -> ConfigError {
    if is_section(name) {
        let expected = format!("a table: write its keys under `[{name}]`");
        return ConfigError::InvalidValue { key: name.to_owned(), origin, expected };
    }
    if matches!(given, RawSetting::Other("table")) && !name.contains('.') {
        let sections = KEYS.iter().filter_map(|key| key.name().split_once('.')).map(|(section, _)| section);
        let sections = sections.chain(["upstreams", "schemas", "prices"]).map(str::to_owned);
        return ConfigError::UnknownKey { key: name.to_owned(), origin, nearest: nearest(name, sections) };
    }
    let mut known: Vec<String> = KEYS.iter().map(|key| key.name().to_owned()).collect();
    if let [_, upstream, _] = name.split('.').collect::<Vec<_>>()[..] {
        known.extend(UPSTREAM_KEYS.iter().map(|key| format!("upstreams.{upstream}.{key}")));
    }
    if let Some((pattern, _)) = name.strip_prefix("prices.").and_then(|rest| rest.rsplit_once('.')) {
        known.extend(PRICE_KEYS.iter().map(|key| format!("prices.{pattern}.{key}")));
    }
    ConfigError::UnknownKey { key: name.to_owned(), origin, nearest: nearest(name, known) }
}

/// Resolves a path relative to a folder, if there is one.
fn resolve_path(folder: Option<&Path>, path: &Path) -> PathBuf {
    folder.map_or_else(|| path.to_owned(), |folder| folder.join(path))
}
