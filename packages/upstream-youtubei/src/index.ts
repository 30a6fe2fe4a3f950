export * as YoutubeiVideoSite from "./YoutubeiVideoSite.ts"
