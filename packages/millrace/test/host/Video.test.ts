/** Who tells of videos, as a host says it; and that nobody loads what he does not choose. */
import { execFileSync } from "node:child_process"
import { Effect, Exit, Scope } from "effect"
import { expect, it, onTestFinished } from "vitest"
import * as SiteServer from "../../../upstream-youtubei/test/SiteServer.ts"
import * as LocalService from "../../../upstreams/test/shared/LocalService.ts"
import * as YouTubeServer from "../../../upstreams/test/video/YouTubeServer.ts"
import { createMillrace, type Providers, standard } from "../../src/index.ts"

const served = async (answer: LocalService.Answer): Promise<string> => {
  const scope = Scope.makeUnsafe()
  onTestFinished(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  return (await Effect.runPromise(Scope.provide(LocalService.serve(answer), scope))).url.href
}

const hostOf = async (providers: Providers) => {
  const host = await createMillrace({ store: "memory:", log: {}, standard: ["video"], providers })
  onTestFinished(() => host.close())
  return { host, account: await host.accounts.open({ email: "ada@example.com", verified: true }) }
}

const id = SiteServer.idOf(0)

it("the site itself, without a key: downloads too", async () => {
  const { account, host } = await hostOf({ video: "youtubei", youtubeUrl: await served(SiteServer.answer()) })
  const { charged, data } = await host.run(standard.video.download, { id }, { account })
  expect([charged, data.streams.length]).toEqual([1, 3])
  await expect(host.run(standard.video.download, { id: "is-private" }, { account })).rejects.toMatchObject({
    code: "download_unavailable",
    message: "The video is private",
    reason: "private"
  })
  expect((await host.balance(account)).available).toBe(199)
})

it("the API, where its address and its quota are options; it has no downloads", async () => {
  const url = await served(YouTubeServer.answer())
  const { account, host } = await hostOf({ video: "youtube", youtubeKey: YouTubeServer.KEY, youtubeUrl: url, youtubeQuota: 1 })
  const { data } = await host.run(standard.video.stats, { id }, { account })
  expect(data.views).toBe(1_000)
  // The second unit of the day
  await expect(host.run(standard.video.about, { handle: YouTubeServer.HANDLE }, { account })).rejects.toMatchObject({
    code: "upstream_unavailable"
  })
  await expect(host.run(standard.video.download, { id }, { account })).rejects.toThrow('pass providers: { video: "youtubei" }')
})

it.each([
  [{ video: "vimeo" }, "The option providers.video is another text: give youtube or youtubei"],
  [{ video: "youtubei", youtubeUrl: "ftp://example.com" }, "The option providers.youtubeUrl is another text: give such as https://"]
])("refuses %o", async (providers, message) => {
  await expect(createMillrace({ store: "memory:", log: {}, standard: ["video"], providers })).rejects.toThrow(message)
})

/** Runs a host in a process of its own, and tells how many modules of the library it loaded. */
const probe = (providers: Providers) => `
import { registerHooks } from "node:module"
let loaded = 0
registerHooks({ load: (url, context, next) => (/\\/youtubei\\.js\\//u.test(url) && loaded++, next(url, context)) })
const { createMillrace, standard } = await import("millrace")
const millrace = await createMillrace({ store: "memory:", log: {}, standard: true, providers: ${JSON.stringify(providers)} })
const account = await millrace.accounts.open({ email: "ada@example.com", verified: true })
await millrace.run(standard.bin.lookup, { bin: "45717360" }, { account })
await millrace.close()
console.log(loaded)
`

const loadedBy = (providers: Providers): number => {
  const args = ["--conditions=@millrace/source", "--input-type=module", "--eval", probe(providers)]
  const cwd = new URL("../../../../examples", import.meta.url)
  return Number(execFileSync(process.execPath, args, { cwd, encoding: "utf8" }))
}

it("no module of youtubei.js is loaded where it is not chosen", { timeout: 60_000 }, () => {
  expect(loadedBy({ video: "youtube", youtubeKey: YouTubeServer.KEY })).toBe(0)
  expect(loadedBy({ video: "youtubei" })).toBeGreaterThan(0)
})
