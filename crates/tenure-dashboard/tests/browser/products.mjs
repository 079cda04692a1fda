// A picture of each product at work, for its README: node products.mjs FOLDER. What is pictured is `tenure demo NAME`, after its
// story has been told.
import { mkdirSync } from "node:fs";
import { call, demo, until } from "./scene.mjs";
import { open, watched } from "./browser.mjs";

const folder = process.argv[2] ?? "target/screens";
mkdirSync(folder, { recursive: true });
const newest = async (server, path) => (await call(server, "GET", path)).items.at(0).id;
const oldest = async (server, path) => (await call(server, "GET", path)).items.at(-1).id;
const pages = {
  coins: async () => "/gates",
  links: async () => "/gates",
  diamonds: async (server) => `/runs/${await newest(server, "/v1/runs")}`,
  tasks: async (server) => `/jobs/${await oldest(server, "/v1/jobs?kind=task.fetch&state=succeeded")}`,
  passport: async () => "/jobs",
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
