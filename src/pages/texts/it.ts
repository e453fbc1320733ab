import type { PayerTexts } from "./en.ts";

/** Italian. */
export const it: PayerTexts = {
  back: "Indietro",
  help: "Assistenza",
  account: "Account: {user}",
  linkEnded: "Questo link non è più valido",
  linkEndedNote: "Torna alla chat e invia di nuovo il messaggio: riceverai un nuovo link.",
  wrong: "Qualcosa è andato storto",

  topUp: "Ricarica il credito",
  balance: "Il tuo credito",
  walletOf: "Ricarichi il portafoglio di {user}. Solo i dispositivi del proprietario ne mostrano " +
    "il credito.",
  choose: "Scegli un importo",
  otherAmount: "Altro importo, da {min} a {max}",
  chooseWithin: "Scegli un importo da {min} a {max}.",
  chooseSteps: "Scegli un importo a passi di {step}.",
  pay: "Continua al pagamento",
  payInDevelopment: "Ricarica il credito",
  byStripe: "Il pagamento è gestito da Stripe. {app} non vede mai la tua carta.",
  byApp: "Paghi su {app}.",
  sandbox: "Questo è un server di sviluppo: non si muove denaro vero.",
  notPayable: "In questa pagina non è possibile ricaricare il credito. Contatta {app}.",
  appClosed:
    "{app} è chiusa, quindi non è possibile ricaricare il credito. Per domande sul tuo credito contatta {app}.",
  afterwards: "Dopo il pagamento torna alla chat e invia di nuovo il messaggio.",
  paid: "{amount} aggiunti",
  paidNote: "Torna alla chat e invia di nuovo il messaggio.",
  confirming: "Grazie",
  confirmingNote: "Stiamo confermando il pagamento. Ci vogliono pochi secondi.",
  onItsWay: "{amount} in arrivo",
  onItsWayNote: "Un pagamento bancario può richiedere alcuni giorni. Non serve pagare di nuovo.",

  activity: "Attività",
  messageOne: "{count} messaggio",
  messageFew: "{count} messaggi",
  messageMany: "{count} messaggi",
  messageOther: "{count} messaggi",
  deposit: "Ricarica",
  charge: "Addebito",
  usage: "Messaggio",
  refund: "Rimborso",
  trial: "Credito di benvenuto",
  expired: "Messaggio interrotto",
  transfer: "Portafogli uniti",

  asks: "{app} chiede il permesso",
  asksNote: "{app} vuole addebitare sul tuo portafoglio ciò che usi lì come {user}. " +
    "Decidi tu il limite giornaliero e puoi revocare il permesso in ogni momento.",
  yourWallet: "Nel tuo portafoglio: {amount}",
  newWallet: "Se acconsenti, avrai un portafoglio su questo dispositivo.",
  currentLimit: "Limite attuale: {amount} al giorno",
  dailyLimit: "Limite giornaliero",
  otherLimit: "Altro importo, in {currency}",
  allow: "Consenti",
  decline: "Non consentire",
  usePasskey: "Usa il mio portafoglio di un altro dispositivo",
  allowed: "{app} può addebitare sul tuo portafoglio",
  allowedNote: "Fino a {amount} al giorno.",
  wallet: "Il tuo portafoglio",
  linkUsed: "Questo link è già stato usato",
  linkUsedNote: "{app} può addebitare sul portafoglio del dispositivo che ha acconsentito. " +
    "Questo dispositivo non è collegato a quel portafoglio. " +
    "Se è lo stesso, i suoi cookie sono stati cancellati nel frattempo.",
  declined: "Non consentito",
  declinedNote: "{app} non può addebitare sul tuo portafoglio. Non è stato addebitato nulla.",

  empty: "Il tuo portafoglio è vuoto",
  apps: "App che possono addebitare",
  noApps: "Nessuna app può addebitare sul tuo portafoglio.",
  asUser: "Come {user}",
  spentToday: "{spent} di {cap} oggi",
  ended: "Non più consentito",
  newLimit: "Nuovo limite giornaliero",
  change: "Modifica",
  endPermission: "Revoca il permesso di {app}",
  passkeys: "Passkey",
  passkeyHas: "La tua passkey apre questo portafoglio sugli altri tuoi dispositivi.",
  passkeyNone: "Solo questo dispositivo apre il tuo portafoglio. Con una passkey lo aprono anche " +
    "gli altri tuoi dispositivi, e non puoi perderlo.",
  deviceOnly: "Solo i dispositivi che hai usato aprono il tuo portafoglio.",
  addPasskey: "Aggiungi una passkey",
  added: "Aggiunta il {date}",
  lastUsed: "usata l’ultima volta il {date}",
  notUsed: "non ancora usata",
  removePasskey: "Rimuovi la passkey del {date}",
  lost: "Dispositivi persi o condivisi",
  lostNote: "Chi ha un dispositivo collegato può spendere dal tuo portafoglio. " +
    "Se ne hai perso uno, disconnettilo qui e rimuovi la sua passkey.",
  signOutOthers: "Disconnetti tutti gli altri dispositivi",
  forget: "Dimentica il portafoglio su questo dispositivo",
  noWallet: "Su questo dispositivo non c’è un portafoglio",
  noWalletNote: "Ne avrai uno quando un’app ti chiederà il permesso.",
  noWalletPasskey: "Con una passkey puoi aprire qui il tuo.",
  forgetTitle: "Dimenticare il portafoglio per sempre?",
  forgetNote: "Non ha né una passkey né un indirizzo e-mail. Solo un altro dispositivo su " +
    "cui lo hai usato potrebbe ancora aprirlo.",
  forgetLose: "Perderesti l’accesso a {amounts}.",
  forgetApps: "Queste app potrebbero ancora addebitare, e non potresti impedirlo:",
  forgetApp: "{app}, come {user}: fino a {cap} al giorno",
  forgetConfirm: "Dimentica per sempre",
  backToWallet: "Torna al tuo portafoglio",

  otherWallet: "Finora ha pagato un altro portafoglio per {user}. Non è aperto su questo " +
    "dispositivo, e il suo denaro resta lì.",
  otherWalletOpen: "Se è tuo, aprilo prima qui.",
  openByPasskey: "Aprilo con una passkey",
  orNewWallet: "Se non lo è, puoi continuare con un nuovo portafoglio, che è vuoto.",
  orThisWallet: "Se non lo è, d’ora in poi può pagare il portafoglio di questo dispositivo.",
  allowNew: "Consenti, con un nuovo portafoglio vuoto",
  otherWalletChoose: "Finora ha pagato un altro portafoglio. Aprilo, o continua con uno " +
    "nuovo e vuoto.",
  wayBackFirst: "Prima di aggiungere denaro: scegli come aprire questo portafoglio se " +
    "perdi questo dispositivo o i suoi cookie. Puoi farlo anche più tardi, nella pagina " +
    "del tuo portafoglio.",
  yourEmail: "Il tuo indirizzo e-mail",
  sendLink: "Inviami un link",
  addEmail: "Aggiungi questo indirizzo",
  emails: "Indirizzi e-mail",
  emailHas: "Un link inviato a questo indirizzo apre il tuo portafoglio su ogni tuo dispositivo.",
  emailNone: "Con un indirizzo e-mail apri il tuo portafoglio su ogni tuo dispositivo: ti " +
    "inviamo un link.",
  removeEmail: "Rimuovi {email}",
  noWalletEmail: "Se hai aggiunto un indirizzo e-mail, ti inviamo un link che apre qui il " +
    "tuo portafoglio.",
  linkSent: "Se questo indirizzo apre un portafoglio, un’e-mail è in arrivo. Il suo link " +
    "funziona una volta, per mezz’ora. A un indirizzo ne arrivano al massimo cinque al " +
    "giorno.",
  confirmSent: "Abbiamo inviato un link a {email}. Aprilo per confermare l’indirizzo.",
  lookForMail: "Guarda nella tua posta",
  mailOpen: "Apri il tuo portafoglio",
  mailOpenNote: "Qualcuno ha chiesto a {host} un link che apre il tuo portafoglio. " +
    "Funziona una volta, per mezz’ora.",
  mailConfirm: "Conferma il tuo indirizzo e-mail",
  mailConfirmNote: "Qualcuno vuole aprire il proprio portafoglio su {host} con questo " +
    "indirizzo. Se sei tu, apri questo link entro mezz’ora.",
  mailUnasked: "Se non sei stato tu, non fare nulla.",
  openWallet: "Apri il portafoglio",
  openWalletTitle: "Apri il tuo portafoglio su questo dispositivo",
  openWalletNote: "{email} apre questo portafoglio. Aprilo solo su un tuo dispositivo.",
  confirmEmail: "Conferma l’indirizzo",
  confirmEmailTitle: "Questo indirizzo apre il tuo portafoglio?",
  confirmEmailNote: "Da allora i link inviati a {email} aprono il portafoglio che lo ha " +
    "chiesto. Se non sei stato tu, chiudi questa pagina.",
  emailConfirmed: "L’indirizzo è confermato",
  mailLinkEnded: "Chiedi una nuova e-mail: ogni link funziona una volta, per mezz’ora.",
  noEmail: "Questo non è un indirizzo e-mail.",
  mailTooOften: "Sono state chieste troppe e-mail. Riprova più tardi.",
  mailFailed: "Non è stato possibile inviare l’e-mail. Riprova più tardi.",
  joinTitle: "Entrambi i portafogli sono tuoi?",
  joinNote: "Il gestore di questo server propone di unire questo portafoglio con un " +
    "altro, che ha {amounts}. Conferma solo se entrambi sono tuoi: chi può aprirne uno " +
    "potrà aprirli entrambi.",
  joinConfirm: "Sono entrambi miei: uniscili",
  joinDecline: "Non sono entrambi miei",
  joinWaiting: "Hai confermato. Deve confermare anche il proprietario dell’altro portafoglio.",
};
