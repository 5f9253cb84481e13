//! The gateway from outside: scripted upstreams on one side, plain clients on the other, a real store beside.
//!
//! One program, so that all of it is linked once.

mod asked_anew;
mod bad_input;
mod behind_a_call;
mod beside_a_search;
mod calls_at_the_limit;
mod citations;
mod compression;
mod conditions;
mod early_answers;
mod endings;
mod ends_of_messages;
mod every_byte;
mod every_cut;
mod failover_exam;
mod fallback;
mod fallback_paths;
mod first_event;
mod half_characters;
mod half_read_calls;
mod history;
mod http2_streams;
mod last_words;
mod ledger;
mod lies;
mod limits;
mod messages;
mod metrics;
mod old_clients;
mod other_paths;
mod parallel_calls;
mod responses;
mod retries;
mod signatures;
mod smuggling;
mod streamed_replies;
mod support;
mod unread_answers;
mod unshown;
mod waiting_for_the_rest;
mod ways_to_upstreams;
mod what_is_counted;
mod what_it_cost;
mod whole_replies;
mod whose_arguments;
