//! A scripted and faulty upstream, for tests of the gateway.
