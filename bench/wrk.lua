-- wrk for the bench; one thread only. Without arguments it asks for the path of its URL; with METHOD TEMPLATE NUMBER
-- WORDS (separated by commas) for searches that nobody asked before: in TEMPLATE, a path or a body, the first %s is
-- a word, the second a day of four years, and %d a rating. Their cycles have no common divisor, so no question comes
-- back for millions of requests from NUMBER on. At the end one line of figures.

local method, template, question
local words = {}
local first_day, days = 1668556800, 1461

local function unseen_search()
   local day = os.date("!%Y-%m-%d", first_day + question % days * 86400)
   local text = string.format(template, words[question % #words + 1], day, question % 5 + 1)
   question = question + 1
   if method == "POST" then
      return wrk.format(method, nil, nil, text)
   end
   return wrk.format(method, text)
end

function init(arguments)
   if arguments[1] then
      method, template, question = arguments[1], arguments[2], tonumber(arguments[3])
      for word in string.gmatch(arguments[4], "[^,]+") do
         words[#words + 1] = word
      end
      request = unseen_search
   end
end

function done(summary, latency)
   local errors = summary.errors
   local failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
   io.write(string.format("figures %f %f %f %d\n", summary.requests / summary.duration * 1e6,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, failed))
end
