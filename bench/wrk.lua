-- What wrk does for the bench: with arguments it asks a search that nobody asked before, each time; in any
-- case it prints the figures of the run in one line that load.py reads.
--
-- Arguments: the number of the first question, a file of words, a file of days (one a line). Word, day and
-- rating step in cycles whose lengths have no common divisor, so that no question comes back before
-- words x days x 5 requests. One thread only: each thread of wrk would count for itself.

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
   local rating = question % 5 + 1
   question = question + 1
   return wrk.format("GET", "/api/reviews/search?query=" .. word .. "&since=" .. day .. "&min_rating=" .. rating)
end

function init(arguments)
   if arguments[1] then
      question, words, days = tonumber(arguments[1]), lines_of(arguments[2]), lines_of(arguments[3])
      request = unseen_search
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
