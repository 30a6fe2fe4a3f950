/** Businesses that a map service finds. */
import { Context, Effect, Layer, Schema } from "effect"
import * as Operation from "../work/Operation.ts"
import { InvalidInput, UpstreamNotConfigured, type UpstreamUnavailable } from "../work/OperationError.ts"
import { PaceAccount } from "../work/Pace.ts"

/** The most businesses of a call. */
export const MOST = 20

const Text = Schema.NullOr(Schema.String)
const Count = Schema.NullOr(Schema.Int)

/** A field is null where the map service does not tell. */
export const Business = Schema.Struct({
  /** The map service: `google_places` or `openstreetmap`. */
  platform: Schema.String,
  type: Schema.Literal("business"),
  /** The map service's own id. */
  id: Schema.String,
  /** The business on the map. */
  url: Text,
  title: Schema.String,
  /** Its address, in a line. */
  text: Text,
  author: Schema.Struct({ name: Text, url: Text }),
  thumbnail_url: Text,
  published_at: Text,
  stats: Schema.Struct({
    ...{ views: Count, likes: Count, dislikes: Count, replies: Count, shares: Count },
    /** 1 to 5. */
    rating: Schema.NullOr(Schema.Finite)
  }),
  extra: Schema.Struct({
    /** The main one. */
    category: Text,
    categories: Schema.Array(Schema.String),
    reviews_count: Count,
    phone: Text,
    has_phone: Schema.Boolean,
    website: Text,
    has_website: Schema.Boolean,
    latitude: Schema.NullOr(Schema.Finite),
    longitude: Schema.NullOr(Schema.Finite),
    place_id: Text,
    /** The customer id of Google Maps. */
    cid: Text,
    /** To be shown with the data, as the map service demands. */
    attribution: Schema.String
  })
})
export type Business = typeof Business.Type

export const Leads = Schema.Struct({
  platform: Schema.String,
  type: Schema.Literal("business"),
  kind: Schema.Literal("search"),
  query: Schema.Struct({ query: Schema.String, hl: Schema.String, with_phone: Schema.Boolean, with_website: Schema.Boolean }),
  /** Of the items. */
  total: Schema.Int,
  items: Schema.Array(Business)
})
export type Leads = typeof Leads.Type

export interface Search {
  readonly query: string
  /** BCP 47. */
  readonly hl: string
  /** At most {@link MOST}. */
  readonly limit: number
}

type Failure = UpstreamUnavailable | UpstreamNotConfigured

export class MapSearch extends Context.Service<
  MapSearch,
  {
    /** Fails without a provider. */
    readonly configured: Effect.Effect<void, UpstreamNotConfigured>
    /** `platform` of all its businesses. */
    readonly platform: string
    /** The best match comes first. Nothing found is an empty list. */
    readonly search: (search: Search) => Effect.Effect<Operation.Read<ReadonlyArray<Business>>, Failure>
  }
>()("@millrace/core/operations/Leads/MapSearch") {
  static readonly unconfigured: Layer.Layer<MapSearch> = Layer.sync(MapSearch, () => {
    const missing = Effect.fail(new UpstreamNotConfigured({ upstream: "map search" }))
    return { configured: missing, platform: "none", search: () => missing }
  })
}

const LANGUAGE = "en"

export const search = Operation.make("leads.search", {
  summary: "Search for businesses on a map",
  description:
    "Such as `bakeries in Utrecht`. `hl` is the language of names and categories. `with_phone` and `with_website` leave out businesses without " +
    `one. At most ${MOST} businesses come, the best match first. \`extra.attribution\` must be shown with the data.`,
  price: 2,
  cached: true,
  route: {
    method: "GET",
    path: "/local/mapsearch/leads",
    query: {
      query: Schema.String.check(Schema.isMinCodePoints(2), Schema.isMaxCodePoints(120)),
      /** `en` by default. */
      hl: Schema.optionalKey(
        Schema.String.check(
          Schema.isPattern(/^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,3}$/u, { expected: "a language tag such as en or pt-BR" })
        )
      ),
      /** 20 by default. */
      limit: Schema.optionalKey(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: MOST }))),
      with_phone: Schema.optionalKey(Schema.Boolean),
      with_website: Schema.optionalKey(Schema.Boolean)
    }
  },
  success: Leads,
  configured: MapSearch.use(({ configured }) => configured),
  check: ({ query }) =>
    query.trim() === "" ? Effect.fail(new InvalidInput({ field: "query", message: "must have words to search for" })) : Effect.void,
  run: Effect.fnUntraced(function* ({ hl = LANGUAGE, limit = MOST, query, with_phone = false, with_website = false }, { accountId }) {
    const map = yield* MapSearch
    // Of fewer, none might be left
    const asked = with_phone || with_website ? MOST : limit
    const searched = map.search({ query: query.trim(), hl, limit: asked })
    const { cache, data } = yield* Effect.provideService(searched, PaceAccount, accountId)
    const items = data.filter(({ extra }) => (extra.has_phone || !with_phone) && (extra.has_website || !with_website)).slice(0, limit)
    const echo = { query, hl, with_phone, with_website }
    return { data: { platform: map.platform, type: "business", kind: "search", query: echo, total: items.length, items } as const, cache }
  }),
  example: {
    input: { query: "bakeries in Utrecht", hl: "en", limit: 1, with_phone: true },
    data: {
      ...{ platform: "openstreetmap", type: "business", kind: "search" },
      query: { query: "bakeries in Utrecht", hl: "en", with_phone: true, with_website: false },
      total: 1,
      items: [
        {
          ...{ platform: "openstreetmap", type: "business", id: "node/2710471345", url: "https://www.openstreetmap.org/node/2710471345" },
          ...{ title: "Bakkerij Neplenbroek", text: "Voorstraat 1, Utrecht, Netherlands" },
          ...{ author: { name: null, url: null }, thumbnail_url: null, published_at: null },
          stats: { views: null, likes: null, dislikes: null, replies: null, shares: null, rating: null },
          extra: {
            ...{ category: "bakery", categories: ["shop", "bakery"], reviews_count: null, phone: "+31 30 231 0000", has_phone: true },
            ...{ website: null, has_website: false, latitude: 52.0935, longitude: 5.1174, place_id: "node/2710471345", cid: null },
            attribution: "Data © OpenStreetMap contributors, ODbL 1.0. http://osm.org/copyright"
          }
        }
      ]
    }
  }
})
