// Calls the service with the types that openapi-typescript has generated from the
// contract, in `api.d.ts` beside this file. They are checked under `--strict`. The
// argument is the base URL of a service; printed is one JSON object.
import createClient from "openapi-fetch";
import type { paths } from "./api.js";

const client = createClient<paths>({ baseUrl: process.argv[2] });
const headers = { Accept: "application/json" };

const found = await client.GET("/api/reviews/search", { params: { query: { limit: 2 } } });
const everything = await client.GET("/reviews.json");
const since = await client.GET("/api/reviews/since/{date}", {
  params: { path: { date: "2026-11-01" } },
});
const insights = await client.GET("/insights.json");
const feed = await client.GET("/api/feed.json");
const refused = await client.GET("/api/reviews/search", { params: { query: { rating: 9 } } });
const missing = await client.GET("/reviews/{id}", { params: { path: { id: "none" } }, headers });
if (!found.data || !everything.data || !since.data || !insights.data || !feed.data) {
  throw new Error("a call gave no data");
}

const first = everything.data.reviews[0];
const verified: boolean | null = first.verified;
const date: string = first.date;
const sourceUrl: string | null = first.source_url;
const page = await client.GET("/reviews/{id}", { params: { path: { id: first.id } }, headers });

console.log(
  JSON.stringify({
    found: found.data.returned,
    reviews: everything.data.reviews.length,
    since: since.data.returned,
    aspects: insights.data.aspects.length,
    items: feed.data.items.length,
    verified,
    page: page.response.status,
    refused: refused.response.status,
    reason: refused.error?.detail,
    missing: missing.response.status,
  }),
);
