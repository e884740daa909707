-- wrk for the bench; one thread only. Without arguments, wrk requests its URL; with TEMPLATE and WORDS (separated by
-- commas), it sends only new searches. TEMPLATE is a path or a body: its first %s is a word, the second a day, %d a
-- rating. The numbers of words (113), days (1461) and ratings (5) have no common divisor: no search is soon repeated.

local question, words = 0, {}

function init(arguments)
   if not arguments[1] then
      return
   end
   for word in string.gmatch(arguments[2], "[^,]+") do
      words[#words + 1] = word
   end
   request = function()
      local day = os.date("!%Y-%m-%d", 1668556800 + question % 1461 * 86400)
      local text = string.format(arguments[1], words[question % #words + 1], day, question % 5 + 1)
      question = question + 1
      if string.sub(text, 1, 1) == "{" then
         return wrk.format("POST", nil, nil, text)
      end
      return wrk.format("GET", text)
   end
end

function done(summary, _)
   local errors = summary.errors
   local failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
   io.write(string.format("figures %f %d\n", summary.requests / summary.duration * 1e6, failed))
end
