// Pictures of every page, light, dark and on a phone: node screens.mjs FOLDER [MINUTES]. The scene is the demo itself, on a
// terminal of its own; the more minutes it has run, the more its charts show.
import { mkdirSync } from "node:fs";
import { call, demo, until } from "./scene.mjs";
import { open, watched } from "./browser.mjs";

const folder = process.argv[2] ?? "target/screens";
const minutes = Number(process.argv[3] ?? 0);
mkdirSync(folder, { recursive: true });
const shown = demo("demo");
const url = await until("the dashboard is open", () => shown.seen().match(/http:\/\/127\.0\.0\.1:\d+/)?.[0]);
const [server, browser] = [{ url }, await open()];
try {
  const post = (path, body) => call(server, "POST", path, { reason: "for the picture", ...body });
  await post("/v1/keys", { name: "billing", scopes: ["enqueue", "read"], tenant: "outlet" });
  await post("/v1/operations", { act: "cancel", state: "queued", kind: "cart.sync", name: "carts nobody wants" });
  await until("the story is told", () => /Everything was shown/.test(shown.seen()), 180);
  await new Promise((done) => setTimeout(done, minutes * 60_000));
  const get = async (path) => (await call(server, "GET", path)).items;
  const run = (await get("/v1/runs?open=true"))[0] ?? (await get("/v1/runs"))[0];
  const job = (await get("/v1/jobs?state=retryable"))[0] ?? (await get("/v1/jobs?state=dead"))[0];
  const story = (await get("/v1/jobs?kind=report.build"))[0];
  const pages = {
    overview: "/", jobs: "/jobs", job: `/jobs/${story.id}`, waiting: `/jobs/${job.id}`, queues: "/queues", dead: "/dead", operations: "/operations",
    runs: "/runs", run: `/runs/${run.id}`, gates: "/gates", gate: "/gates/source%3Asupplier", schedules: "/schedules", schedule: "/schedules/outlet/nightly-count",
    workers: "/workers", webhooks: "/webhooks", audit: "/audit", tenants: "/tenants", keys: "/keys",
  };
  for (const [mode, options] of [
    ["light", { viewport: { width: 1360, height: 900 } }],
    ["dark", { viewport: { width: 1360, height: 900 }, colorScheme: "dark" }],
    ["phone", { viewport: { width: 390, height: 844 } }],
  ]) {
    const page = await watched(browser, options);
    for (const [name, path] of Object.entries(pages)) {
      await page.goto(url + path);
      await page.locator("#live.on").waitFor();
      await page.screenshot({ path: `${folder}/${name}-${mode}.png` });
      console.log(`${name}-${mode}.png`);
    }
    await page.context().close();
  }
} finally {
  await browser.close();
  await shown.end();
}
