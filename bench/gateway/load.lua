-- What wrk sends, and its figures as one line of JSON. Arguments: `stream` or `whole`, then headers as NAME=VALUE.
function init(args)
  wrk.method = "POST"
  wrk.path = "/v1/chat/completions"
  wrk.headers["Content-Type"] = "application/json"
  wrk.headers["Authorization"] = "Bearer sk-bench"
  local messages = '"messages":[{"role":"system","content":"You are brief."},{"role":"user","content":"Tell me of the harbour."}]'
  local body = '{"model":"gpt-4o-mini",' .. messages
  if args[1] == "stream" then
    body = body .. ',"stream":true'
  end
  wrk.body = body .. "}"
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
