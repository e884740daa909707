-- What wrk does for the bench besides a GET of one path: with arguments it sends a body, or asks a search that
-- nobody asked before, each time. In any case it prints the figures of the run in one line that load.py reads.
--
-- Arguments: GET and a path, or POST and a body; then, for unseen searches, the number of the first question,
-- a file of words, a file of days (one a line). In the path or body the first %s is then a word, the second a
-- day, and %d a rating. They step in cycles whose lengths have no common divisor, so that no question comes
-- back before words x days x 5 requests. One thread only: each thread of wrk would count for itself.

local method, template
local words, days = {}, {}
local question = 0

local function lines_of(path)
   local lines = {}
   for line in io.lines(path) do
      lines[#lines + 1] = line
   end
   return lines
end

local function unseen_search()
   local word = words[question % #words + 1]
   local day = days[question % #days + 1]
   local text = string.format(template, word, day, question % 5 + 1)
   question = question + 1
   if method == "POST" then
      return wrk.format(method, nil, nil, text)
   end
   return wrk.format(method, text)
end

function init(arguments)
   method, template = arguments[1], arguments[2]
   if arguments[3] then
      question, words, days = tonumber(arguments[3]), lines_of(arguments[4]), lines_of(arguments[5])
      request = unseen_search
   elseif method == "POST" then
      wrk.method, wrk.body = method, template
   end
end

function done(summary, latency)
   local errors = summary.errors
   local broken = errors.connect + errors.read + errors.write + errors.timeout
   io.write(string.format(
      "figures requests=%d seconds=%.6f p50_ms=%.4f p99_ms=%.4f p999_ms=%.4f refused=%d broken=%d\n",
      summary.requests, summary.duration / 1e6,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency:percentile(99.9) / 1e3,
      errors.status, broken))
end
