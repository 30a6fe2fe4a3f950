/** A server that speaks the Places API (New): https://developers.google.com/maps/documentation/places/web-service/text-search */
import type { Answer } from "../shared/LocalService.ts"

export const KEY = "AIza-host"

/** As the documentation shows a place, and one of which little is known. */
export const places = [
  {
    name: "places/ChIJifIePKtZwokRVZ-UdRGkZzs",
    id: "ChIJifIePKtZwokRVZ-UdRGkZzs",
    types: ["bakery", "food_store", "store", "point_of_interest", "establishment"],
    internationalPhoneNumber: "+31 30 231 0000",
    formattedAddress: "Voorstraat 1, 3512 AH Utrecht, Netherlands",
    location: { latitude: 52.0935, longitude: 5.1174 },
    rating: 4.6,
    googleMapsUri: "https://maps.google.com/?cid=4281112345678901234&g_mp=CiVnb29nbGU",
    websiteUri: "https://bakery.example/",
    userRatingCount: 512,
    displayName: { text: "Bakkerij Neplenbroek", languageCode: "nl" },
    primaryTypeDisplayName: { text: "Bakery", languageCode: "en" },
    primaryType: "bakery",
    attributions: [{ provider: "Some Guide", providerUri: "https://guide.example" }]
  },
  { id: "ChIJ2", displayName: { text: "Oven", languageCode: "nl" }, types: ["bakery"], location: { latitude: 52, longitude: 5 } },
  { id: "ChIJ3", displayName: { text: "Telephone", languageCode: "nl" }, internationalPhoneNumber: "+31 30 231 0001" }
]

const refusal = (code: number, status: string, reason: string) => ({
  error: { code, message: "refused", status, details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason }] }
})

/** Only the fields that were asked for come; without any, the request is refused. */
const masked = (place: Readonly<Record<string, unknown>>, mask: string) =>
  Object.fromEntries(Object.entries(place).filter(([name]) => mask.split(",").includes(`places.${name}`)))

export const answer = (): Answer => (response, request) => {
  const send = (status: number, body: unknown) =>
    void response
      .writeHead(status, { "content-type": "application/json; charset=UTF-8", "cache-control": "private" })
      .end(JSON.stringify(body))
  const { "x-goog-api-key": key, "x-goog-fieldmask": mask } = request.headers
  if (request.method !== "POST" || request.path !== "/v1/places:searchText") return send(404, refusal(404, "NOT_FOUND", "NONE"))
  if (key === "malformed") return send(400, refusal(400, "INVALID_ARGUMENT", "API_KEY_INVALID"))
  if (key !== KEY) return send(403, refusal(403, "PERMISSION_DENIED", "API_KEY_SERVICE_BLOCKED"))
  if (typeof mask !== "string") return send(400, refusal(400, "INVALID_ARGUMENT", "NO_FIELD_MASK"))
  const { pageSize, textQuery } = JSON.parse(request.body)
  if (textQuery.includes("nothing")) return send(200, {})
  send(200, { places: places.slice(0, pageSize).map((place) => masked(place, mask)) })
}
