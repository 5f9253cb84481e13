//! Injects faults for testing an application or Endmark itself.
//!
//! A plan looks like `cut@20,drop@10%`: see [`FaultPlan`](crate::settings::FaultPlan). A fault occurs between the
//! upstream and the gateway, which then has to recover, or between the gateway and its client.

mod body;
mod draw;
mod limit;
mod strike;
mod whole;

pub(crate) use draw::Faults;
