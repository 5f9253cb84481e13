#![doc = include_str!("../README.md")]

pub mod budget;
pub mod cap;
pub mod compact;
pub mod conversation;
pub mod count;
mod meter;
mod models;
mod moment;
mod price;
pub mod read;
mod tokens;

pub use meter::{AdmittedCall, AfterCall, BeforeCall, CallCost, Meter, NotAdmitted, SessionUsage};
pub use models::{Model, Models, ModelsError, SourcePackage};
pub use moment::{Day, Moment};
pub use price::{
    ADVISED_TIER, Cost, DailySpan, PriceEntry, PriceError, Prices, Rate, Rates, dollars, dollars_for_people,
    is_standard_tier, rate_from_dollars, round_half_up,
};
pub use tokens::Tokens;
