// A browser that tells on every page: errors, violations of the policy, broken text.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export async function open() {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  return chromium.launch({ executablePath, args });
}

// A page whose troubles are collected in `page.troubles`.
export async function watched(browser, options = {}) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.troubles = [];
  page.on("console", (message) => message.type() === "error" && page.troubles.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => page.troubles.push(`error: ${error}`));
  await page.addInitScript(() =>
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI}`)),
  );
  page.setDefaultTimeout(15_000);
  return page;
}

// Goes there and looks for everything that must not be.
export async function visit(page, url, status = 200) {
  const answer = await page.goto(url);
  assert.equal(answer.status(), status, url);
  await check(page);
}

// Nothing broke, nothing became markup, nobody is kept out.
export async function check(page) {
  const url = page.url();
  assert.equal(await page.evaluate(() => window.broken), undefined, `${url}: a text became a script`);
  assert.equal(await page.locator("img[src=x]").count(), 0, `${url}: a text became markup`);
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
  const grave = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
  const told = grave.map((one) => `${one.id}: ${one.help}\n  ${one.nodes.slice(0, 3).map((node) => node.html).join("\n  ")}`);
  assert.deepEqual(told, [], url);
  assert.deepEqual(page.troubles, [], url);
}

// Presses a button, fills in what its form asks for, and says yes. Answers the sentence that the page says then.
export async function press(page, scope, label, fields = {}) {
  const opener = page.locator(`${scope} button`, { hasText: new RegExp(`^${label}…$`) }).first();
  const sheet = page.locator(`#${await opener.getAttribute("popovertarget")}`);
  await opener.click();
  await sheet.waitFor();
  for (const [name, value] of Object.entries(fields)) {
    const field = sheet.locator(`[name="${name}"]`);
    if (value === true) await sheet.locator(`[name="${name}"]`).first().check();
    else if ((await field.first().evaluate((element) => element.tagName)) === "SELECT") await field.selectOption(value);
    else if ((await field.first().getAttribute("type")) === "checkbox") for (const one of value) await sheet.locator(`[name="${name}"][value="${one}"]`).check();
    else await field.fill(value);
  }
  await Promise.all([page.waitForNavigation(), sheet.locator("button.main").click()]);
}

// The sentence after an act.
export async function said(page, pattern) {
  const text = await page.locator(".said.good").first().innerText();
  assert.match(text, pattern);
  await check(page);
}
