/** Words by which the extractor tells codes from other numbers, in lower case. Most are substrings, because languages inflect and compound. */

/** Words for a code. */
const CODE = [
  // English, and words that many languages share
  ...["code", "otp", "passcode", "password", "pass code", "security number"],
  // Spanish, Portuguese, Italian, French
  ...["código", "codigo", "clave", "contraseña", "senha", "palavra-passe", "codice", "password", "mot de passe"],
  // German, Dutch, Polish, Turkish
  ...["passwort", "kennwort", "wachtwoord", "kod", "hasło", "şifre", "parola"],
  // Russian
  ...["код", "пароль"],
  // Chinese
  ...["验证码", "校验码", "确认码", "动态码", "动态密码", "安全码", "随机密码", "取件码", "激活码", "提取码"],
  ...["驗證碼", "驗証碼", "動態密碼", "確認碼", "安全碼"],
  // Japanese
  ...["コード", "認証番号", "確認番号", "暗証番号", "パスワード", "ワンタイムパス"],
  // Arabic
  ...["رمز", "كود", "كلمة المرور", "كلمة السر", "السري"],
  // Korean, Hindi
  ...["인증번호", "인증 번호", "확인번호", "승인번호", "비밀번호", "코드", "कोड", "ओटीपी", "पासवर्ड"]
]

/** Words for a code that are parts of other words, so they stand alone. */
const CODE_ALONE = ["pin", "tan", "mtan", "mobiletan", "smstan", "2fa"]

/** What is called a code, and is for something else. */
const OTHER_CODE = [
  ...["promo code", "promotion code", "discount code", "coupon code", "voucher code", "zip code", "postal code", "country code"],
  ...["barcode", "qr code", "qr-code", "gutscheincode", "rabattcode", "code promo", "code postal", "código postal", "código promocional"],
  ...["codice sconto", "codice postale", "промокод", "優惠碼", "优惠码", "クーポンコード"]
]

/** Names of other numbers. The number that follows is not a code. */
const OTHER = [
  ...["order", "invoice", "tracking", "reference", "booking", "ticket number", "case number", "account", "contract", "flight"],
  ...["ending", "ends with", "card", "since", "stop to", "call", "phone", "hotline", "member", "locker", "street"],
  ...["pedido", "factura", "tarjeta", "terminada en", "llám", "teléfono", "envío", "calle", "puntos"],
  ...["commande", "facture", "carte", "colis", "appelez", "dossier"],
  ...["bestellung", "rechnung", "karte", "sendung", "auftrag", "vertrag", "vorgang", "packstation", "rufen sie", "hauptstraße"],
  ...["cartão", "protocolo", "ligue", "central", "encomenda", "objeto", "fatura"],
  ...["ordine", "carta", "chiama", "fattura", "spedizione", "pacco"],
  ...["заказ", "карт", "звоните", "справка", "баланс", "номер", "ул."],
  ...["订单", "訂單", "尾号", "末四码", "客服", "致电", "拨打", "电话", "余额", "單號", "单号"],
  ...["注文", "末尾", "お問い合わせ", "荷物番号", "お届け"],
  ...["طلبك", "البطاقة", "المنتهية", "اتصل", "للاستفسار", "الدعم", "هاتف"],
  ...["sipariş", "kartınız", "kart sonu", "bilgi:", "zamówieni", "paczka", "kartą", "paczkomat", "주문", "문의", "ऑर्डर", "bestelling"]
]

const OTHER_ALONE = ["ref", "tel", "nr", "no", "unit", "case", "reply", "text", "a/c", "acct", "iban"]

/** Words that ask to enter what follows. */
const ENTER = [
  ...["use", "enter", "usa", "utilice", "utiliza", "ingresa", "introduce", "utilisez", "saisissez", "verwenden sie", "nutze", "gib"],
  ...[
    "introduza",
    "insira",
    "digite",
    "inserisci",
    "utilizza",
    "введите",
    "используйте",
    "请输入",
    "輸入",
    "gebruik",
    "użyj",
    "wpisz",
    "girin"
  ]
]

/** What a code is entered for. */
const PURPOSE = [
  ...["verif", "vérif", "confirm", "log in", "login", "log into", "sign in", "authenti", "acceder", "acceso", "iniciar", "entrar"],
  ...["connecter", "connexion", "valider", "anmelden", "anzumelden", "bestätigen", "accedere", "accesso", "вход", "войти", "подтвер"],
  ...["登录", "登入", "inloggen", "zalogowa", "giriş"]
]

const escape = (word: string): string => word.replaceAll(/[\\^$.*+?()[\]{}|/]/gu, "\\$&")
const longestFirst = (words: ReadonlyArray<string>): string =>
  [...new Set(words)]
    .sort((a, b) => b.length - a.length)
    .map(escape)
    .join("|")

const alone = (words: ReadonlyArray<string>): string => `(?<![\\p{L}\\p{N}])(?:${longestFirst(words)})(?![\\p{L}\\p{N}])`

/** All labels of numbers. The group that took part says of what: `decoy`, `code` or `other`. */
export const LABELS = new RegExp(
  `(?<decoy>${longestFirst(OTHER_CODE)})|(?<code>${longestFirst(CODE)}|${alone(CODE_ALONE)})|(?<other>${longestFirst(OTHER)}|${alone(OTHER_ALONE)})`,
  "gu"
)

/** At the end of the text before a number. */
export const ENTERED = new RegExp(`(?<![\\p{L}])(?:${longestFirst(ENTER)})[\\s:"“「]{0,2}$`, "u")
/** Soon after a number. */
export const PURPOSES = new RegExp(longestFirst(PURPOSE), "u")

/** Before an amount, and after one. */
export const CURRENCY_BEFORE = /(?:[$€£¥₹₽₩₺]|(?<![\p{L}])(?:rs\.?|inr|usd|eur|gbp|brl|rub|pln|try|nt|cad|aud|chf|jpy|cny|人民币))\s?$/u
export const CURRENCY_AFTER =
  /^\s?(?:[$€£¥₹₽₩₺%]|(?:usd|eur|euros?|gbp|inr|brl|rub|rur|pln|tl|try|chf|jpy|kr|zł|руб|dollars?|pts?|points?|puntos|punkte|pontos|punti|баллов|mb|gb|mo|go|mins?|minutes?)(?![\p{L}])|元|円|원|塊|年|月|号|號|ポイント|ريال|درهم|جنيه|دينار|نقطة)/u
