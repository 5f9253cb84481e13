//! The arguments of `endmark compact`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use endmark_envelope::Limits;

use crate::arguments::store::StoreArgument;

/// The wire formats of conversations that the command line accepts.
pub(crate) const FORMATS: [&str; 4] = ["openai_chat", "openai_responses", "anthropic_messages", "gemini"];

#[derive(Debug, Args, Limits)]
pub(crate) struct Compact {
    /// The request body, or a list of messages; `-` or no file: standard input
    #[arg(value_name = "FILE")]
    #[limits(skip)]
    pub(crate) file: Option<PathBuf>,
    /// The wire format of the conversation
    #[arg(long = "for", value_name = "FORMAT", value_parser = PossibleValuesParser::new(FORMATS), required_unless_present = "batch")]
    pub(crate) format: Option<String>,
    /// `window`: write a narrative above the trigger; `emergency`: shrink the whole request
    #[arg(long, value_name = "MODE", default_value = "window")]
    #[limits(skip)]
    pub(crate) mode: ModeChoice,
    /// Compact from this many tokens: of the history (`window`: 24000), of the whole request (`emergency`: 850000)
    #[arg(long, value_name = "N")]
    pub(crate) trigger_tokens: Option<u64>,
    /// Keep the history below this many tokens; by default 4/3 of the trigger, or 3/5 with `emergency`
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// Always compact, to this share of the history's tokens, as 0.2
    #[arg(long, value_name = "SHARE", conflicts_with_all = ["trigger_tokens", "budget_tokens"])]
    #[limits(skip)]
    pub(crate) keep_share: Option<f64>,
    /// Keep the newest N messages in full
    #[arg(long, value_name = "N")]
    #[limits(skip)]
    pub(crate) keep: Option<usize>,
    /// Do not store the original
    #[arg(long)]
    pub(crate) no_store: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgument,
    /// Read many requests as JSON Lines, and write one result per line
    #[arg(long)]
    pub(crate) batch: bool,
}

/// How a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeChoice {
    /// Replace old messages by a narrative in sentences when the history has grown
    Window,
    /// Replace old messages by a list of calls and thoughts when the request hardly fits any model
    Emergency,
}
