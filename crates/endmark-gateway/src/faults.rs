//! Faults on command, so that an application, and Endmark itself, can be rehearsed against them.
//!
//! What goes wrong is written as in `cut@20,drop@10%`: see [`FaultPlan`](crate::settings::FaultPlan). It strikes between the upstream and the
//! gateway, which then has to mend it, or between the gateway and its client, which then has to bear it.

mod body;
mod draw;
mod limit;
mod strike;
mod whole;

pub(crate) use draw::{Faults, Rehearsal};
