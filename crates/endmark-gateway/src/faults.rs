//! Injects faults for testing an application or Endmark itself.
//!
//! A plan looks like `cut@20,drop@10%`: see [`FaultPlan`](crate::settings::FaultPlan). A fault occurs between the
//! upstream and the gateway, which then has to recover, or between the gateway and its client.

mod body;
mod limit_cut;
mod selection;
mod stream;
mod whole;

pub(crate) use selection::Faults;
