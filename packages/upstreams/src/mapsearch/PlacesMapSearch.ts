/** `MapSearch` on the Places API (New) of Google Maps Platform: `POST /v1/places:searchText`. Its terms forbid that results are kept. */
import { Leads } from "@millrace/core"
import { Effect, Layer, Redacted, Schema } from "effect"
import type { Reply } from "../shared/ByteService.ts"
import * as JsonService from "../shared/JsonService.ts"
import * as PublicReader from "../shared/PublicReader.ts"

const PLATFORM = "google_places"

export interface Options extends PublicReader.ReadLimits {
  /** `https://places.googleapis.com` by default. */
  readonly baseUrl?: URL
  readonly apiKey: Redacted.Redacted
}

const Text = Schema.optionalKey(Schema.String)
const LocalizedText = Schema.optionalKey(Schema.Struct({ text: Schema.String }))

/** A field without a value is missing. */
const SearchReply = Schema.Struct({
  places: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        id: Schema.String,
        displayName: LocalizedText,
        formattedAddress: Text,
        googleMapsUri: Text,
        primaryType: Text,
        primaryTypeDisplayName: LocalizedText,
        types: Schema.optionalKey(Schema.Array(Schema.String)),
        rating: Schema.optionalKey(Schema.Finite),
        userRatingCount: Schema.optionalKey(Schema.Int),
        internationalPhoneNumber: Text,
        websiteUri: Text,
        location: Schema.optionalKey(Schema.Struct({ latitude: Schema.Finite, longitude: Schema.Finite })),
        attributions: Schema.optionalKey(Schema.Array(Schema.Struct({ provider: Text })))
      })
    )
  )
})

type Place = NonNullable<(typeof SearchReply.Type)["places"]>[number]

/** What is asked for is what is paid for. */
const FIELDS = [
  ...["id", "displayName", "formattedAddress", "googleMapsUri", "primaryType", "primaryTypeDisplayName", "types", "rating"],
  ...["userRatingCount", "internationalPhoneNumber", "websiteUri", "location", "attributions"]
]
  .map((field) => `places.${field}`)
  .join(",")

const cidOf = (uri: string | undefined): string | null => (uri === undefined ? null : (URL.parse(uri)?.searchParams.get("cid") ?? null))

const businessOf = (place: Place): Leads.Business => {
  const { attributions = [], id, internationalPhoneNumber: phone, location, types = [], websiteUri: website } = place
  const providers = attributions.flatMap(({ provider }) => (provider === undefined ? [] : [provider]))
  return {
    ...{ platform: PLATFORM, type: "business", id, url: place.googleMapsUri ?? null },
    ...{ title: place.displayName?.text ?? "", text: place.formattedAddress ?? null },
    ...{ author: { name: null, url: null }, thumbnail_url: null, published_at: null },
    stats: { views: null, likes: null, dislikes: null, replies: null, shares: null, rating: place.rating ?? null },
    extra: {
      category: place.primaryTypeDisplayName?.text ?? place.primaryType ?? null,
      categories: types,
      reviews_count: place.userRatingCount ?? null,
      ...{ phone: phone ?? null, has_phone: phone !== undefined, website: website ?? null, has_website: website !== undefined },
      ...{ latitude: location?.latitude ?? null, longitude: location?.longitude ?? null },
      ...{ place_id: id, cid: cidOf(place.googleMapsUri) },
      attribution: ["Google Maps", ...providers].join(", ")
    }
  }
}

/** A key that is not valid is answered with 400. */
const isDenied = (reply: Reply): boolean =>
  PublicReader.isDenied(reply) || (reply.status === 400 && new TextDecoder().decode(reply.bytes).includes("API_KEY_INVALID"))

/** A reply may have 4 MiB and 10 seconds by default. */
export const layer = ({ apiKey, baseUrl = new URL("https://places.googleapis.com"), ...limits }: Options): Layer.Layer<Leads.MapSearch> =>
  Layer.effect(
    Leads.MapSearch,
    Effect.gen(function* () {
      const credentials = { "x-goog-api-key": Redacted.value(apiKey) }
      const { json } = yield* PublicReader.make({ ...limits, upstream: "map search", base: baseUrl, credentials, isDenied })
      const read = json(SearchReply, "place")
      const url = JsonService.below(baseUrl, "v1/places:searchText")
      return {
        configured: Effect.void,
        platform: PLATFORM,
        search: Effect.fn("PlacesMapSearch.search")(function* ({ hl, limit, query }) {
          const body = { textQuery: query, languageCode: hl, pageSize: limit }
          const { cache, data } = yield* read({ url, headers: { "x-goog-fieldmask": FIELDS }, body }).pipe(
            Effect.catchTag("NotFound", () => Effect.fail(PublicReader.unexpected("map search", 404)))
          )
          return { cache, data: (data.places ?? []).slice(0, limit).map(businessOf) }
        })
      }
    })
  )
