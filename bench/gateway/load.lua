-- What wrk sends, and its figures as one line of JSON. Arguments: `stream` or `whole`, then headers as NAME=VALUE.
-- A kind may name another format than Chat Completions: `stream:gemini`.
local formats = {
  chat = {
    path = "/v1/chat/completions",
    body = '{"model":"gpt-4o-mini","messages":[{"role":"system","content":"You are brief."},{"role":"user","content":"Tell me of the harbour."}]%s}',
  },
  responses = {
    path = "/v1/responses",
    body = '{"model":"gpt-4o-mini","instructions":"You are brief.","input":[{"role":"user","content":"Tell me of the harbour."}]%s}',
  },
  messages = {
    path = "/v1/messages",
    body = '{"model":"claude-sonnet-4-5","max_tokens":4096,"system":"You are brief.","messages":[{"role":"user","content":"Tell me of the harbour."}]%s}',
  },
  gemini = {
    path = "/v1beta/models/gemini-2.5-flash:generateContent",
    stream = "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
    body = '{"systemInstruction":{"parts":[{"text":"You are brief."}]},"contents":[{"role":"user","parts":[{"text":"Tell me of the harbour."}]}]}',
  },
}

function init(args)
  local kind, name = args[1]:match("^(%a+):?(%a*)$")
  local format = formats[name == "" and "chat" or name]
  local streams = kind == "stream"
  wrk.method = "POST"
  wrk.path = streams and format.stream or format.path
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Authorization"] = "Bearer sk-bench"
  -- The path of Gemini says it.
  wrk.body = format.body:format(streams and ',"stream":true' or "")
  for position = 2, #args do
    local name, value = args[position]:match("^([^=]+)=(.*)$")
    if name == ":path" then
      wrk.path = value
    else
      wrk.headers[name] = value
    end
  end
  request = wrk.format()
  wrk.request = function() return request end
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"requests":%d,"seconds":%.6f,"p50_us":%.1f,"p99_us":%.1f,"errors":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
