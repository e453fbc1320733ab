import type { PayerTexts } from "./en.ts";

/** German. */
export const de: PayerTexts = {
  back: "Zurück",
  help: "Hilfe",
  account: "Konto: {user}",
  linkEnded: "Dieser Link gilt nicht mehr",
  linkEndedNote: "Geh zurück in deinen Chat und sende deine Nachricht noch einmal: " +
    "Du bekommst einen neuen Link.",
  wrong: "Etwas ist schiefgelaufen",

  topUp: "Guthaben aufladen",
  balance: "Dein Guthaben",
  walletOf: "Du lädst das Wallet von {user} auf. Das Guthaben sehen nur die eigenen Geräte.",
  choose: "Betrag wählen",
  otherAmount: "Anderer Betrag, {min} bis {max}",
  chooseWithin: "Wähle einen Betrag von {min} bis {max}.",
  chooseSteps: "Wähle einen Betrag in Schritten von {step}.",
  pay: "Weiter zur Zahlung",
  payInDevelopment: "Guthaben aufladen",
  byStripe: "Die Zahlung läuft über Stripe. {app} sieht deine Karte nie.",
  byApp: "Du bezahlst bei {app}.",
  sandbox: "Dies ist ein Entwicklungsserver: Es fließt kein echtes Geld.",
  testMode: "Testmodus von Stripe: Es fließt kein echtes Geld.",
  notPayable: "Auf dieser Seite kann kein Guthaben aufgeladen werden. Bitte wende dich an {app}.",
  appClosed:
    "{app} ist geschlossen, deshalb kann kein Guthaben aufgeladen werden. Bei Fragen zu deinem Guthaben wende dich bitte an {app}.",
  afterwards: "Geh nach der Zahlung zurück in deinen Chat und sende deine Nachricht noch einmal.",
  paid: "{amount} aufgeladen",
  paidNote: "Geh zurück in deinen Chat und sende deine Nachricht noch einmal.",
  confirming: "Danke",
  confirmingNote: "Deine Zahlung wird bestätigt. Das dauert ein paar Sekunden.",
  onItsWay: "{amount} unterwegs",
  onItsWayNote: "Eine Überweisung kann einige Tage dauern. Du musst nicht noch einmal bezahlen.",

  activity: "Verlauf",
  messageOne: "{count} Nachricht",
  messageFew: "{count} Nachrichten",
  messageMany: "{count} Nachrichten",
  messageOther: "{count} Nachrichten",
  deposit: "Aufladung",
  charge: "Abbuchung",
  usage: "Nachricht",
  refund: "Erstattung",
  trial: "Startguthaben",
  expired: "Abgebrochene Nachricht",
  transfer: "Vereinte Wallets",
  carried: "Frühere Nachrichten",

  asks: "{app} bittet um Erlaubnis",
  asksNote: "{app} möchte von deinem Wallet abbuchen, was du dort als {user} nutzt. " +
    "Du legst das Tageslimit fest und kannst die Erlaubnis jederzeit beenden.",
  yourWallet: "In deinem Wallet: {amount}",
  newWallet: "Wenn du zustimmst, bekommst du auf diesem Gerät ein Wallet.",
  currentLimit: "Aktuelles Limit: {amount} pro Tag",
  dailyLimit: "Tageslimit",
  otherLimit: "Anderer Betrag, in {currency}",
  allow: "Erlauben",
  decline: "Nicht erlauben",
  usePasskey: "Mein Wallet von einem anderen Gerät nutzen",
  allowed: "{app} darf von deinem Wallet abbuchen",
  allowedNote: "Bis zu {amount} pro Tag.",
  wallet: "Dein Wallet",
  linkUsed: "Dieser Link wurde schon benutzt",
  linkUsedNote: "{app} darf vom Wallet des Geräts abbuchen, das zugestimmt hat. " +
    "Dieses Gerät ist nicht damit verbunden. " +
    "Falls es dasselbe Gerät ist, wurden inzwischen seine Cookies gelöscht.",
  declined: "Nicht erlaubt",
  declinedNote: "{app} darf nicht von deinem Wallet abbuchen. Es wurde nichts abgebucht.",

  empty: "Dein Wallet ist leer",
  apps: "Apps, die abbuchen dürfen",
  noApps: "Keine App darf von deinem Wallet abbuchen.",
  asUser: "Als {user}",
  spentToday: "{spent} von {cap} heute",
  ended: "Nicht mehr erlaubt",
  newLimit: "Neues Tageslimit",
  change: "Ändern",
  endPermission: "Erlaubnis für {app} beenden",
  passkeys: "Passkeys",
  passkeyHas: "Dein Passkey öffnet dieses Wallet auf deinen anderen Geräten.",
  passkeyNone: "Nur dieses Gerät öffnet dein Wallet. Mit einem Passkey geht es auch auf deinen " +
    "anderen Geräten, und du kannst es nicht verlieren.",
  deviceOnly: "Nur Geräte, die du schon benutzt hast, öffnen dein Wallet.",
  addPasskey: "Passkey einrichten",
  added: "Eingerichtet: {date}",
  lastUsed: "zuletzt benutzt: {date}",
  notUsed: "noch nicht benutzt",
  removePasskey: "Passkey vom {date} entfernen",
  lost: "Verlorene oder geteilte Geräte",
  lostNote: "Wer ein verbundenes Gerät hat, kann von deinem Wallet ausgeben. " +
    "Hast du ein Gerät verloren, melde es hier ab und entferne seinen Passkey.",
  signOutOthers: "Alle anderen Geräte abmelden",
  forget: "Wallet auf diesem Gerät vergessen",
  noWallet: "Auf diesem Gerät gibt es kein Wallet",
  noWalletNote: "Du bekommst eins, wenn eine App um deine Erlaubnis bittet.",
  noWalletPasskey: "Mit einem Passkey kannst du dein Wallet hier öffnen.",
  forgetTitle: "Wallet endgültig vergessen?",
  forgetNote: "Es hat weder einen Passkey noch eine E-Mail-Adresse. Nur ein anderes " +
    "Gerät, auf dem du es benutzt hast, könnte es noch öffnen.",
  forgetLose: "Du würdest den Zugriff auf {amounts} verlieren.",
  forgetApps: "Diese Apps könnten weiter abbuchen, und du könntest es nicht beenden:",
  forgetApp: "{app}, als {user}: bis zu {cap} pro Tag",
  forgetConfirm: "Endgültig vergessen",
  backToWallet: "Zurück zu deinem Wallet",

  otherWallet: "Bisher hat ein anderes Wallet für {user} bezahlt. Es ist auf diesem Gerät " +
    "nicht geöffnet, und sein Guthaben bleibt darin.",
  otherWalletOpen: "Falls es deins ist, öffne es zuerst hier.",
  openByPasskey: "Mit einem Passkey öffnen",
  orNewWallet: "Falls nicht, kannst du mit einem neuen Wallet weitermachen. Es ist leer.",
  orThisWallet: "Falls nicht, kann ab jetzt das Wallet auf diesem Gerät bezahlen.",
  allowNew: "Erlauben, mit einem neuen, leeren Wallet",
  otherWalletChoose: "Bisher hat ein anderes Wallet bezahlt. Öffne es, oder mach mit " +
    "einem neuen, leeren weiter.",
  wayBackFirst: "Bevor du Guthaben auflädst: Wähle, wie du dieses Wallet öffnest, wenn du " +
    "dieses Gerät oder seine Cookies verlierst. Das geht auch später, auf der Seite " +
    "deines Wallets.",
  yourEmail: "Deine E-Mail-Adresse",
  sendLink: "Link schicken",
  addEmail: "Diese Adresse hinzufügen",
  emails: "E-Mail-Adressen",
  emailHas: "Ein Link, den wir an diese Adresse schicken, öffnet dein Wallet auf jedem " +
    "deiner Geräte.",
  emailNone: "Mit einer E-Mail-Adresse öffnest du dein Wallet auf jedem deiner Geräte: " +
    "Wir schicken dir einen Link.",
  removeEmail: "{email} entfernen",
  noWalletEmail: "Falls du eine E-Mail-Adresse hinzugefügt hast, schicken wir dir einen " +
    "Link, der dein Wallet hier öffnet.",
  linkSent: "Falls diese Adresse ein Wallet öffnet, ist eine E-Mail unterwegs. Ihr Link " +
    "gilt einmal, eine halbe Stunde lang. An eine Adresse gehen höchstens fünf am Tag.",
  confirmSent: "Wir haben einen Link an {email} geschickt. Öffne ihn, um die Adresse zu " +
    "bestätigen.",
  lookForMail: "Sieh in dein Postfach",
  mailOpen: "Öffne dein Wallet",
  mailOpenNote: "Jemand hat {host} um einen Link gebeten, der dein Wallet öffnet. Er gilt " +
    "einmal, eine halbe Stunde lang.",
  mailConfirm: "Bestätige deine E-Mail-Adresse",
  mailConfirmNote: "Jemand möchte mit dieser Adresse ein Wallet bei {host} öffnen können. " +
    "Wenn du das bist, öffne diesen Link innerhalb einer halben Stunde.",
  mailUnasked: "Falls du das nicht warst, musst du nichts tun.",
  openWallet: "Wallet öffnen",
  openWalletTitle: "Dein Wallet auf diesem Gerät öffnen",
  openWalletNote: "{email} öffnet dieses Wallet. Öffne es nur auf einem eigenen Gerät.",
  confirmEmail: "Adresse bestätigen",
  confirmEmailTitle: "Öffnet diese Adresse dein Wallet?",
  confirmEmailNote: "Ab dann öffnen Links, die an {email} gehen, das Wallet, das darum " +
    "gebeten hat. Falls du das nicht warst, schließ diese Seite.",
  emailConfirmed: "Die Adresse ist bestätigt",
  mailLinkEnded: "Lass dir eine neue E-Mail schicken: Jeder Link gilt einmal, eine halbe " +
    "Stunde lang.",
  noEmail: "Das ist keine E-Mail-Adresse.",
  mailTooOften: "Es wurden zu viele E-Mails angefordert. Versuch es später noch einmal.",
  mailFailed: "Die E-Mail konnte nicht verschickt werden. Versuch es später noch einmal.",
  joinTitle: "Gehören dir beide Wallets?",
  joinNote: "Der Betreiber dieses Servers schlägt vor, dieses Wallet mit einem anderen zu " +
    "vereinen, in dem {amounts} sind. Bestätige das nur, wenn dir beide gehören: Wer " +
    "eines davon öffnen kann, öffnet dann beide.",
  joinConfirm: "Beide gehören mir: vereinen",
  joinDecline: "Mir gehören nicht beide",
  joinWaiting: "Du hast bestätigt. Auch wem das andere Wallet gehört, muss bestätigen.",
};
