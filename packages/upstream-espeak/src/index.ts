export * as EspeakSpeechSynthesizer from "./EspeakSpeechSynthesizer.ts"
