//! The Endmark gateway: HTTP in, HTTP out, and every reply whole or honestly marked as cut.
