// A picture of each product at work, for its README: node products.mjs FOLDER. What is pictured is `tenure demo NAME`, after its
// story has been told.
import { mkdirSync } from "node:fs";
import { call, demo, until } from "./scene.mjs";
import { open, watched } from "./browser.mjs";

const folder = process.argv[2] ?? "target/screens";
mkdirSync(folder, { recursive: true });
const first = (path) => async (server) => (await call(server, "GET", path)).items[0].id;
const pages = {
  coins: async () => "/gates",
  links: async (server) => `/runs/${await first("/v1/runs?state=succeeded")(server)}`,
  diamonds: async (server) => `/runs/${await first("/v1/runs")(server)}`,
  tasks: async (server) => `/jobs/${await first("/v1/jobs?kind=task.fetch&state=succeeded")(server)}`,
  passport: async () => "/webhooks",
};
const browser = await open();
try {
  for (const [name, path] of Object.entries(pages)) {
    const shown = demo(`demo ${name}`);
    try {
      const url = await until("the dashboard is open", () => shown.seen().match(/http:\/\/127\.0\.0\.1:\d+/)?.[0]);
      await until("the story is told", () => /Ctrl-C ends it/.test(shown.seen()), 180);
      const page = await watched(browser, { viewport: { width: 1360, height: 900 } });
      await page.goto(url + (await path({ url })));
      await page.locator("#live.on").waitFor();
      await page.screenshot({ path: `${folder}/${name}.png` });
      console.log(`${name}.png`);
      await page.context().close();
    } finally {
      await shown.end();
    }
  }
} finally {
  await browser.close();
}
