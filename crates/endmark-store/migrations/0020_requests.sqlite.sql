-- Lists of requests and of sessions, newest first. The first index has everything that a list of requests is filtered by, so that
-- a filter which few requests match does not read their rows.

CREATE INDEX IF NOT EXISTS usage_requests ON usage(started_at, request_id, verdict, upstream, model, credential, session) WHERE call = 1;

CREATE INDEX IF NOT EXISTS usage_sessions ON usage(session, started_at);
