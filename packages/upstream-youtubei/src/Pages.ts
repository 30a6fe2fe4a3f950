/** The site's pages of lists, as youtubei.js parses them: their items, and where the next page is. */
import { type Helpers, type Innertube, type YT, YTNodes } from "youtubei.js"
import { type Slice, unknownPage } from "./PageTokens.ts"
import { Misread } from "./SiteClient.ts"

type Node = Helpers.YTNode

const isContinuation = (node: Node): node is YTNodes.ContinuationItem | YTNodes.ContinuationItemView =>
  node.is(YTNodes.ContinuationItem, YTNodes.ContinuationItemView)

const tokenIn = (value: unknown): string | undefined =>
  typeof value === "object" && value !== null && "token" in value && typeof value.token === "string" ? value.token : undefined

/** The site wraps the command at times. */
const tokenOf = ({ endpoint }: YTNodes.ContinuationItem | YTNodes.ContinuationItemView): string | undefined => {
  const { payload } = endpoint
  if (tokenIn(payload) !== undefined) return tokenIn(payload)
  const commands: unknown = payload?.commands
  const found = Array.isArray(commands) ? commands.map((command) => tokenIn(command?.continuationCommand)) : []
  return found.find((token) => token !== undefined)
}

const continuationAmong = (nodes: ReadonlyArray<Node>): string | undefined => {
  const found = nodes.filter(isContinuation).map(tokenOf)
  // A list that goes on to nobody knows where would look like one that ends
  if (found.length > 0 && found.every((token) => token === undefined)) throw new Misread()
  return found.find((token) => token !== undefined)
}

const flattened = (nodes: ReadonlyArray<Node>): ReadonlyArray<Node> =>
  nodes.flatMap((node) => (node.is(YTNodes.ItemSection) ? (node.contents ?? []) : [node]))

const sliceOf = (nodes: ReadonlyArray<Node>): Slice<Node> => ({
  items: flattened(nodes).filter((node) => !isContinuation(node)),
  continuation: continuationAmong(nodes)
})

/** What lists are made of, and the site's words for an empty one. */
const isKnown = (node: Node): boolean =>
  node.is(YTNodes.Video, YTNodes.PlaylistVideo, YTNodes.LockupView, YTNodes.CommentThread, YTNodes.CommentsHeader) ||
  node.is(YTNodes.Message, YTNodes.BackgroundPromo)

/** A list of new shapes would look like an empty one. */
const known = (slice: Slice<Node>): Slice<Node> => {
  if (slice.items.length > 0 && !slice.items.some(isKnown)) throw new Misread()
  return slice
}

/** The first page of a list has something, if only the word that there is nothing. */
const filled = (slice: Slice<Node>): Slice<Node> => {
  if (slice.items.length === 0 && slice.continuation === undefined) throw new Misread()
  return known(slice)
}

export const ofSearch = (search: YT.Search): Slice<Node> => {
  const [sections] = search.memo.getType(YTNodes.SectionList)
  const slice = { items: search.results, continuation: continuationAmong(sections?.contents ?? []) }
  return filled(slice)
}

export const ofPlaylist = (playlist: YT.Playlist): Slice<Node> => {
  const [list] = playlist.memo.getType(YTNodes.PlaylistVideoList)
  if (list !== undefined) return filled(sliceOf(list.videos))
  const sections = playlist.memo.getType(YTNodes.ItemSection).flatMap(({ contents }) => [...(contents ?? [])])
  return filled(sliceOf(sections))
}

type Action = YTNodes.AppendContinuationItemsAction | Node

const contentsOf = (action: Action): ReadonlyArray<Node> =>
  "contents" in action && Array.isArray(action.contents) ? (action.contents as ReadonlyArray<Node>) : []

/** The nodes that a reply adds to a page. Undefined if it adds nothing at all. */
export const added = (actions: ReadonlyArray<Action> | null | undefined): ReadonlyArray<Node> | undefined =>
  actions === null || actions === undefined || actions.length === 0 ? undefined : actions.flatMap(contentsOf)

export const ofAdded = (nodes: ReadonlyArray<Node>): Slice<Node> => known(sliceOf(nodes))

/** The next page of a list. `InvalidInput` if the site knows no such page. */
export const next = async ({ actions }: Innertube, path: "/browse" | "/search" | "/next", continuation: string) => {
  const reply = await actions.execute(path, { continuation, parse: true })
  const nodes = added([
    ...(("on_response_received_actions" in reply && reply.on_response_received_actions) || []),
    ...(("on_response_received_endpoints" in reply && reply.on_response_received_endpoints) || []),
    ...(("on_response_received_commands" in reply && reply.on_response_received_commands) || [])
  ])
  if (nodes === undefined) throw unknownPage()
  return known(sliceOf(nodes))
}
