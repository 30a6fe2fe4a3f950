/**
 * `MapSearch` on OpenStreetMap: a Nominatim server finds the places, and an Overpass server, where one is configured, tells more of them.
 * The usage rules of the public servers (https://operations.osmfoundation.org/policies/nominatim/) are kept for any: one request a second by
 * all hosts together, a `User-Agent` that says who asks, and the attribution in each item.
 */
import { Leads, Pace, UpstreamUnavailable } from "@millrace/core"
import { type Duration, Effect, Layer, Schema } from "effect"
import * as JsonService from "../shared/JsonService.ts"
import * as PublicReader from "../shared/PublicReader.ts"

const PLATFORM = "openstreetmap"

export interface Options extends PublicReader.ReadLimits {
  /** The URL above `/search`, such as `https://nominatim.openstreetmap.org`. */
  readonly nominatim: URL
  /** The URL above `/interpreter`, such as `https://overpass-api.de/api`. */
  readonly overpass?: URL
  /** An e-mail address or a page by which the operators of these servers reach the host's. */
  readonly contact: string
  /** The longest wait for a turn: 10 seconds by default. */
  readonly patience?: Duration.Input
}

const EVERY = "1 second"

const Tags = Schema.Record(Schema.String, Schema.String)
type Tags = typeof Tags.Type

const Text = Schema.optionalKey(Schema.NullOr(Schema.String))

/** https://nominatim.org/release-docs/latest/api/Output/ */
const PlacesReply = Schema.Array(
  Schema.Struct({
    licence: Schema.String,
    osm_type: Schema.optionalKey(Schema.Literals(["node", "way", "relation"])),
    osm_id: Schema.optionalKey(Schema.Union([Schema.Int, Schema.FiniteFromString])),
    lat: Schema.FiniteFromString,
    lon: Schema.FiniteFromString,
    category: Schema.String,
    type: Schema.String,
    name: Text,
    display_name: Schema.String,
    extratags: Schema.optionalKey(Schema.NullOr(Tags))
  })
)

/** https://wiki.openstreetmap.org/wiki/Overpass_API. `remark` is there when the query was not done to its end. */
const ElementsReply = Schema.Struct({
  remark: Schema.optionalKey(Schema.String),
  elements: Schema.Array(Schema.Struct({ type: Schema.String, id: Schema.Int, tags: Schema.optionalKey(Tags) }))
})

const NO_TAGS: ReadonlyMap<string, Tags> = new Map()

type Place = (typeof PlacesReply.Type)[number]

/** `node/2710471345`; undefined for what is no object of the map, such as a postcode. */
const idOf = ({ osm_id, osm_type }: Place): string | undefined =>
  osm_id === undefined || osm_type === undefined ? undefined : `${osm_type}/${osm_id}`

/** The first of several numbers or addresses, which are separated by semicolons. */
const first = (tags: Tags, ...keys: ReadonlyArray<string>): string | undefined => {
  for (const key of keys) {
    const value = tags[key]?.split(";")[0]?.trim()
    if (value !== undefined && value !== "") return value
  }
  return undefined
}

const businessOf = (place: Place, id: string, tags: Tags): Leads.Business => {
  const { category, display_name, lat, licence, lon, name, type } = place
  const phone = first(tags, "phone", "contact:phone", "contact:mobile")
  const website = first(tags, "website", "contact:website", "url")
  // The address begins with the name
  const address = name != null && display_name.startsWith(`${name}, `) ? display_name.slice(name.length + 2) : display_name
  return {
    ...{ platform: PLATFORM, type: "business", id, url: `https://www.openstreetmap.org/${id}`, title: name || display_name, text: address },
    ...{ author: { name: null, url: null }, thumbnail_url: null, published_at: null },
    stats: { views: null, likes: null, dislikes: null, replies: null, shares: null, rating: null },
    extra: {
      ...{ category: type, categories: [category, type], reviews_count: null },
      ...{ phone: phone ?? null, has_phone: phone !== undefined, website: website ?? null, has_website: website !== undefined },
      ...{ latitude: lat, longitude: lon, place_id: id, cid: null, attribution: licence }
    }
  }
}

/** All tags of some objects. */
const queryOf = (ids: ReadonlyArray<string>): string => {
  const byType = Map.groupBy(ids, (id) => id.split("/")[0] ?? "")
  const parts = [...byType].map(([type, ids]) => `${type}(id:${ids.map((id) => id.split("/")[1]).join(",")});`)
  return `[out:json][timeout:10];(${parts.join("")});out tags;`
}

/** A reply may have 4 MiB, and a read 20 seconds with its wait, by default. */
export const layer = ({
  contact,
  nominatim,
  overpass,
  patience = "10 seconds",
  ...limits
}: Options): Layer.Layer<Leads.MapSearch, never, Pace> =>
  Layer.effect(
    Leads.MapSearch,
    Effect.gen(function* () {
      const { turn } = yield* Pace
      const headers = { "user-agent": `millrace (${contact})` }
      const readerOf = (upstream: string, base: URL) =>
        PublicReader.make({
          timeLimit: "20 seconds",
          ...limits,
          upstream,
          base,
          turn: turn(upstream, { every: EVERY, patience })
        })
      const places = (yield* readerOf("nominatim", nominatim)).json(PlacesReply, "place")
      const elements = overpass === undefined ? undefined : (yield* readerOf("overpass", overpass)).json(ElementsReply, "place")

      /** Tags by id, as the map has them now. */
      const tagsOf = Effect.fnUntraced(function* (ids: ReadonlyArray<string>) {
        if (overpass === undefined || elements === undefined || ids.length === 0) return { cache: "hit", tags: NO_TAGS } as const
        const url = JsonService.below(overpass, "interpreter")
        url.searchParams.set("data", queryOf(ids))
        const { cache, data } = yield* elements({ url, headers })
        if (data.remark !== undefined)
          return yield* new UpstreamUnavailable({ upstream: "overpass", reason: "it did not finish the query" })
        return { cache, tags: new Map(data.elements.map(({ id, tags = {}, type }) => [`${type}/${id}`, tags])) }
      })

      const search = Effect.fnUntraced(function* ({ hl, limit, query }: Leads.Search) {
        const url = JsonService.below(nominatim, "search")
        const asked = { q: query, format: "jsonv2", layer: "poi", extratags: "1", limit: String(limit), "accept-language": hl }
        url.search = new URLSearchParams(asked).toString()
        const { cache, data } = yield* places({ url, headers })
        const found = data.flatMap((place) => {
          const id = idOf(place)
          return id === undefined ? [] : [{ id, place }]
        })
        const told = yield* tagsOf(found.map(({ id }) => id))
        const isHit = cache === "hit" && told.cache === "hit"
        return {
          cache: isHit ? ("hit" as const) : ("miss" as const),
          data: found.slice(0, limit).map(({ id, place }) => businessOf(place, id, { ...place.extratags, ...told.tags.get(id) }))
        }
      })

      return {
        configured: Effect.void,
        platform: PLATFORM,
        search: Effect.fn("OsmMapSearch.search")((given: Leads.Search) =>
          Effect.catchTag(search(given), "NotFound", () => Effect.fail(PublicReader.unexpected("map search", 404)))
        )
      }
    })
  )
