/** What Try makes, in a real browser: an image that shows, and code that runs as it stands when it is pasted. */
import { execFile } from "node:child_process"
import { once } from "node:events"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import type { Page } from "playwright-core"
import { expect, test } from "vitest"
import { png } from "../../packages/upstreams/test/images/Png.ts"
import { barriersOn, openBrowser, visit } from "./Browser.ts"
import { undoAfterwards } from "./Leftovers.ts"
import { balanceOf, newStore, openAccount, serve, temporaryFolder, UNLIMITED } from "./Server.ts"

/** A server with the published API of AUTOMATIC1111, which draws red. Its address. */
const painter = async (): Promise<string> => {
  const server = createServer((request, response) => {
    request.resume().once("end", () => {
      response.setHeader("Content-Type", "application/json")
      response.end(JSON.stringify({ images: [png(64, 64).toString("base64")], parameters: {}, info: "{}" }))
    })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  undoAfterwards(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const run = promisify(execFile)

/** How the code of each tab is run in a folder. */
const RUN: Readonly<Record<string, (text: string, folder: string) => readonly [string, ReadonlyArray<string>]>> = {
  curl: (text) => ["sh", ["-c", text]],
  TypeScript: (text, folder) => {
    const file = join(folder, "pasted.mts")
    writeFileSync(file, text)
    return [process.execPath, [file]]
  },
  Python: (text) => ["python3", ["-c", text]]
}

const isThere = (program: string): Promise<boolean> =>
  run(program, ["--version"]).then(
    () => true,
    () => false
  )

/** The code of each tab of the form that is open, by the names of the tabs whose programs are there. */
const codes = async (page: Page): Promise<ReadonlyArray<readonly [name: string, text: string]>> => {
  const found: Array<readonly [string, string]> = []
  for (const name of Object.keys(RUN)) {
    if (!(await isThere(name === "Python" ? "python3" : name === "curl" ? "curl" : process.execPath))) continue
    await page.getByRole("tab", { name, exact: true }).click()
    const text = await page.getByRole("region", { name: `the call in ${name.toLowerCase()}` }).textContent()
    found.push([name, text ?? ""])
  }
  return found
}

test("an image that a call makes shows, and its code runs when it is pasted", { timeout: 120_000 }, async () => {
  const { url: store } = newStore()
  const { account, key } = await openAccount(store, 100)
  const folder = temporaryFolder()
  const server = await serve(["--store", store, "--blobs", temporaryFolder(), "--images", `automatic1111:${await painter()}`], {
    env: UNLIMITED
  })
  const { page, wrongs } = await visit(await openBrowser(), server.url)
  await page.goto(server.url)
  await page.getByText("Sign in with a key").click()
  await page.getByLabel("API key").fill(key)
  await page.getByRole("button", { name: "Sign in" }).click()
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor()

  const paste = ([name, text]: readonly [string, string]) => {
    const [program, args] = RUN[name]?.(text, folder) ?? ["false", []]
    return run(program, [...args], { cwd: folder, env: { ...process.env, NODE_OPTIONS: "", MILLRACE_KEY: key } })
  }

  await page.goto(`${server.url}/#/try/bin.lookup`)
  await page.getByRole("button", { name: "Call", exact: true }).waitFor()
  const lookups = await codes(page)
  for (const code of lookups) expect([code[0], (await paste(code)).stdout]).toEqual([code[0], expect.stringMatching(/visa/iu)])
  expect((await balanceOf(store, account)).available).toBe(100 - lookups.length * 0.5)

  await page.goto(`${server.url}/#/try/image.generate`)
  await page.getByRole("button", { name: "Call", exact: true }).click()
  const image = page.getByRole("img", { name: "What the call made" })
  await image.waitFor({ timeout: 40_000 })
  await expect.poll(() => image.evaluate((element) => (element as unknown as { readonly naturalWidth: number }).naturalWidth)).toBe(1_024)
  expect(await barriersOn(page)).toEqual([])
  const job = /job_[0-9A-Z]{26}/u.exec((await page.getByRole("region", { name: "the answer" }).textContent()) ?? "")?.[0] ?? ""

  // The answer is a file: pasted code saves it
  await page.goto(`${server.url}/#/try/image.download`)
  await page.getByLabel("job").fill(job)
  for (const code of await codes(page)) {
    await paste(code)
    const saved = readFileSync(join(folder, "answer"))
    expect([code[0], saved.subarray(1, 4).toString()]).toEqual([code[0], "PNG"])
    rmSync(join(folder, "answer"))
  }
  expect(wrongs).toEqual([])
})
