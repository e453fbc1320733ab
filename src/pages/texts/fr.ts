import type { PayerTexts } from "./en.ts";

/** French. */
export const fr: PayerTexts = {
  back: "Retour",
  help: "Aide",
  account: "Compte : {user}",
  linkEnded: "Ce lien n’est plus valable",
  linkEndedNote: "Retournez dans votre conversation et renvoyez votre message : " +
    "vous recevrez un nouveau lien.",
  wrong: "Un problème est survenu",

  topUp: "Ajouter de l’argent",
  balance: "Votre solde",
  walletOf: "Vous alimentez le portefeuille de {user}. " +
    "Seuls les appareils de son propriétaire en affichent le solde.",
  choose: "Choisissez un montant",
  otherAmount: "Autre montant, de {min} à {max}",
  chooseWithin: "Choisissez un montant de {min} à {max}.",
  chooseSteps: "Choisissez un montant par paliers de {step}.",
  pay: "Continuer vers le paiement",
  payInDevelopment: "Ajouter de l’argent",
  byStripe: "Le paiement est traité par Stripe. {app} ne voit jamais votre carte.",
  byApp: "Vous payez chez {app}.",
  sandbox: "Ceci est un serveur de développement : aucun argent réel ne circule.",
  testMode: "Mode test de Stripe : aucun argent réel ne circule.",
  notPayable: "Il n’est pas possible d’ajouter de l’argent sur cette page. Contactez {app}.",
  appClosed:
    "{app} est fermé : il n’est plus possible d’ajouter de l’argent. Pour toute question sur votre solde, contactez {app}.",
  afterwards: "Après le paiement, retournez dans votre conversation et renvoyez votre message.",
  paid: "{amount} ajoutés",
  paidNote: "Retournez dans votre conversation et renvoyez votre message.",
  confirming: "Merci",
  confirmingNote: "Votre paiement est en cours de confirmation. Cela prend quelques secondes.",
  onItsWay: "{amount} en cours d’arrivée",
  onItsWayNote: "Un paiement bancaire peut prendre quelques jours. Inutile de payer à nouveau.",

  activity: "Activité",
  messageOne: "{count} message",
  messageFew: "{count} messages",
  messageMany: "{count} messages",
  messageOther: "{count} messages",
  deposit: "Argent ajouté",
  charge: "Débit",
  usage: "Message",
  refund: "Remboursement",
  trial: "Crédit de bienvenue",
  expired: "Message interrompu",
  transfer: "Portefeuilles réunis",
  carried: "Messages précédents",

  asks: "{app} demande votre autorisation",
  asksNote: "{app} souhaite débiter votre portefeuille pour ce que vous y utilisez en tant que " +
    "{user}. Vous fixez la limite quotidienne et pouvez y mettre fin à tout moment.",
  yourWallet: "Dans votre portefeuille : {amount}",
  newWallet: "En autorisant, vous obtenez un portefeuille sur cet appareil.",
  currentLimit: "Limite actuelle : {amount} par jour",
  dailyLimit: "Limite quotidienne",
  otherLimit: "Autre montant, en {currency}",
  allow: "Autoriser",
  decline: "Ne pas autoriser",
  usePasskey: "Utiliser mon portefeuille d’un autre appareil",
  allowed: "{app} peut débiter votre portefeuille",
  allowedNote: "Jusqu’à {amount} par jour.",
  wallet: "Votre portefeuille",
  linkUsed: "Ce lien a déjà été utilisé",
  linkUsedNote: "{app} peut débiter le portefeuille de l’appareil qui l’a autorisé. " +
    "Cet appareil n’y est pas relié. " +
    "S’il s’agit du même appareil, ses cookies ont été supprimés depuis.",
  declined: "Non autorisé",
  declinedNote: "{app} ne peut pas débiter votre portefeuille. Rien n’a été débité.",

  empty: "Votre portefeuille est vide",
  apps: "Applications autorisées à le débiter",
  noApps: "Aucune application ne peut débiter votre portefeuille.",
  asUser: "En tant que {user}",
  spentToday: "{spent} sur {cap} aujourd’hui",
  ended: "N’est plus autorisé",
  newLimit: "Nouvelle limite quotidienne",
  change: "Modifier",
  endPermission: "Mettre fin à l’autorisation de {app}",
  passkeys: "Clés d’accès",
  passkeyHas: "Votre clé d’accès ouvre ce portefeuille sur vos autres appareils.",
  passkeyNone: "Seul cet appareil ouvre votre portefeuille. Avec une clé d’accès, vos autres " +
    "appareils le peuvent aussi, et vous ne pouvez pas le perdre.",
  deviceOnly: "Seuls les appareils que vous avez utilisés ouvrent votre portefeuille.",
  addPasskey: "Ajouter une clé d’accès",
  added: "Ajoutée le {date}",
  lastUsed: "dernière utilisation : {date}",
  notUsed: "pas encore utilisée",
  removePasskey: "Supprimer la clé d’accès du {date}",
  lost: "Appareils perdus ou partagés",
  lostNote: "Toute personne disposant d’un appareil relié peut dépenser depuis votre " +
    "portefeuille. Si vous en avez perdu un, déconnectez-le ici et supprimez sa clé d’accès.",
  signOutOthers: "Déconnecter tous les autres appareils",
  forget: "Oublier le portefeuille sur cet appareil",
  noWallet: "Il n’y a pas de portefeuille sur cet appareil",
  noWalletNote: "Vous en obtenez un lorsqu’une application demande votre autorisation.",
  noWalletPasskey: "Avec une clé d’accès, vous pouvez ouvrir le vôtre ici.",
  forgetTitle: "Oublier votre portefeuille définitivement ?",
  forgetNote: "Il n’a ni clé d’accès ni adresse e-mail. Seul un autre appareil où vous " +
    "l’avez utilisé pourrait encore l’ouvrir.",
  forgetLose: "Vous perdriez l’accès à {amounts}.",
  forgetApps: "Ces applications pourraient encore le débiter, sans que vous puissiez l’empêcher :",
  forgetApp: "{app}, en tant que {user} : jusqu’à {cap} par jour",
  forgetConfirm: "Oublier définitivement",
  backToWallet: "Retour à votre portefeuille",

  otherWallet: "Un autre portefeuille a payé pour {user} jusqu’ici. Il n’est pas ouvert " +
    "sur cet appareil, et son argent y reste.",
  otherWalletOpen: "S’il est à vous, ouvrez-le d’abord ici.",
  openByPasskey: "L’ouvrir avec une clé d’accès",
  orNewWallet: "Sinon, vous pouvez continuer avec un nouveau portefeuille, vide.",
  orThisWallet: "Sinon, le portefeuille de cet appareil peut payer désormais.",
  allowNew: "Autoriser, avec un nouveau portefeuille vide",
  otherWalletChoose: "Un autre portefeuille a payé jusqu’ici. Ouvrez-le, ou continuez " +
    "avec un nouveau portefeuille vide.",
  wayBackFirst: "Avant d’ajouter de l’argent : choisissez comment ouvrir ce portefeuille " +
    "si vous perdez cet appareil ou ses cookies. Vous pouvez aussi le faire plus tard, " +
    "sur la page de votre portefeuille.",
  yourEmail: "Votre adresse e-mail",
  sendLink: "M’envoyer un lien",
  addEmail: "Ajouter cette adresse",
  emails: "Adresses e-mail",
  emailHas: "Un lien envoyé à cette adresse ouvre votre portefeuille sur tous vos appareils.",
  emailNone: "Avec une adresse e-mail, vous ouvrez votre portefeuille sur tous vos " +
    "appareils : nous vous envoyons un lien.",
  removeEmail: "Retirer {email}",
  noWalletEmail: "Si vous avez ajouté une adresse e-mail, nous vous envoyons un lien qui " +
    "ouvre votre portefeuille ici.",
  linkSent: "Si cette adresse ouvre un portefeuille, un e-mail est en route. Son lien " +
    "fonctionne une fois, pendant une demi-heure. Une adresse en reçoit au plus cinq par " +
    "jour.",
  confirmSent: "Nous avons envoyé un lien à {email}. Ouvrez-le pour confirmer l’adresse.",
  lookForMail: "Consultez votre messagerie",
  mailOpen: "Ouvrez votre portefeuille",
  mailOpenNote: "Quelqu’un a demandé à {host} un lien qui ouvre votre portefeuille. Il " +
    "fonctionne une fois, pendant une demi-heure.",
  mailConfirm: "Confirmez votre adresse e-mail",
  mailConfirmNote: "Quelqu’un veut ouvrir son portefeuille chez {host} avec cette " +
    "adresse. Si c’est vous, ouvrez ce lien dans la demi-heure.",
  mailUnasked: "Si ce n’est pas vous, ne faites rien.",
  openWallet: "Ouvrir le portefeuille",
  openWalletTitle: "Ouvrir votre portefeuille sur cet appareil",
  openWalletNote: "{email} ouvre ce portefeuille. Ouvrez-le seulement sur un appareil à vous.",
  confirmEmail: "Confirmer l’adresse",
  confirmEmailTitle: "Cette adresse ouvre-t-elle votre portefeuille ?",
  confirmEmailNote: "Dès lors, les liens envoyés à {email} ouvrent le portefeuille qui " +
    "l’a demandé. Si ce n’est pas vous, fermez cette page.",
  emailConfirmed: "L’adresse est confirmée",
  mailLinkEnded: "Demandez un nouvel e-mail : chaque lien fonctionne une fois, pendant " +
    "une demi-heure.",
  noEmail: "Ce n’est pas une adresse e-mail.",
  mailTooOften: "Trop d’e-mails ont été demandés. Réessayez plus tard.",
  mailFailed: "L’e-mail n’a pas pu être envoyé. Réessayez plus tard.",
  joinTitle: "Ces deux portefeuilles sont-ils à vous ?",
  joinNote: "L’exploitant de ce serveur propose de réunir ce portefeuille avec un autre, " +
    "qui contient {amounts}. Confirmez seulement si les deux sont à vous : qui peut en " +
    "ouvrir un pourra ouvrir les deux.",
  joinConfirm: "Les deux sont à moi : les réunir",
  joinDecline: "Ils ne sont pas tous deux à moi",
  joinWaiting: "Vous avez confirmé. Le propriétaire de l’autre portefeuille doit aussi confirmer.",
};
