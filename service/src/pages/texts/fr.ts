/** Every sentence of the pages in French. */
import type { Texts } from './en.ts'
import { statesFr } from './states-fr.ts'

export const fr: Texts = {
  ...statesFr,
  skip: 'Aller au résultat',
  home: 'Touchstone, page d’accueil',
  languages: 'Langue',
  testnet: 'Réseau de test, contrats non audités.',
  testnetMore: 'Pour essai seulement : n’achetez, ne vendez et ne remettez rien sur la seule foi de ce résultat.',
  about: 'Touchstone montre ce que la blockchain dit d’un produit à puce, à un bloc que chacun peut vérifier.',
  privacy: 'Aucun cookie, aucun pistage, aucun tiers.',

  product: 'Produit',
  productNote: 'Indications du fabricant, non vérifiées.',
  productUnnamed: 'Produit {token}',
  brand: 'Marque',
  model: 'Modèle',
  size: 'Taille',
  origin: 'Origine',
  description: 'Description',
  picture: 'Image',
  pictureLink: 'Ouvrir l’image du fabricant sur {host}',
  gtin: 'Code article (GTIN)',
  serial: 'Numéro de série',
  token: 'Identifiant du jeton',
  mismatchTitle: 'Texte du produit retenu',
  mismatchText:
    'Le texte du produit conservé ici ne correspond pas à son empreinte sur la blockchain ; il n’est donc pas affiché.',
  noMetadata: 'Aucun texte n’est disponible pour cet article.',

  history: 'Historique sur la blockchain',
  historyMissing: 'L’historique ne peut pas être affiché pour le moment.',
  block: 'Bloc',
  blockHash: 'Empreinte du bloc',
  transaction: 'Transaction',

  check: 'Vérifiez vous-même',
  checkText:
    'Rien ne vous oblige à croire cette page. L’état a été lu dans ce contrat, à ce bloc ; la même lecture donne à chacun la même réponse.',
  contract: 'Contrat',
  castCommand: 'Avec cast de Foundry',
  verifyCommand: 'Avec la commande Touchstone',
  commandHint: 'Remplacez {place} par l’adresse d’un fournisseur en qui vous avez confiance.',
  verdictLink: 'La fiche sur la blockchain en JSON, sans clé',
  copy: 'Copier',
  copied: 'Copié',
  recheck: 'Vérifier dans ce navigateur',
  recheckText: 'Votre navigateur interroge lui-même un fournisseur blockchain et compare chaque champ.',
  recheckProvider: 'Fournisseur (adresse JSON-RPC)',
  recheckHint:
    'Cette page ne peut interroger que {origin}. Pour un autre fournisseur, utilisez une commande ci-dessus.',
  recheckButton: 'Vérifier maintenant',
  recheckRunning: 'Lecture de la blockchain…',
  recheckSame: 'Chaque champ concorde avec la blockchain au bloc {block}.',
  recheckChanged:
    'La fiche concorde avec la blockchain au bloc {block}, mais elle a changé depuis la création de cette page.',
  recheckDiffers: 'Cela ne concorde pas avec la blockchain : {fields}. Ne vous y fiez pas.',
  recheckFailed: 'Rien n’a été vérifié : le fournisseur ou ce service n’a pas répondu.',
  owner: 'Tester un propriétaire',
  ownerText:
    'L’adresse est comparée dans votre navigateur avec l’engagement inscrit sur la blockchain. Elle n’est envoyée nulle part.',
  ownerLabel: 'Adresse de portefeuille',
  ownerButton: 'Tester',
  ownerYes: 'Oui, l’article appartient à cette adresse.',
  ownerNo: 'Non, l’article n’appartient pas à cette adresse.',
  ownerInvalid: 'Une adresse se compose de 0x et de 40 chiffres hexadécimaux.',

  ownership: 'Propriété',
  ownerClaimed: 'Un propriétaire a pris cet article à son nom. Son identité n’est pas affichée ici.',
  ownerUnclaimed: 'Personne n’a encore pris cet article à son nom.',
  ownerClosed: 'La fiche est close : l’article n’a plus de propriétaire.',
  claimHow: 'Le prendre à votre nom',
  claimText:
    'Touchez l’article dans l’application de sa marque et confirmez. La blockchain n’accepte cette demande qu’avec un contact récent et votre propre accord. Aucun compte n’est nécessaire ici.',
  transferHow: 'Le transmettre',
  transferText:
    'Vous lancez la transmission et le nouveau propriétaire l’accepte. D’ici là, l’article reste à vous ; une offre expire après 72 heures.',
  lossHow: 'Perdu ou volé ?',
  lossText:
    'Signalez-le dans l’application de sa marque ou au vendeur. Dès lors, toute personne qui touche ou recherche l’article voit l’avertissement.',

  share: 'Garder et partager',
  shareText: 'Ce lien omet le contact : il ouvre la fiche sur la blockchain et n’est jamais une preuve.',
  qrLabel: 'Code QR du lien {url}',
  copyLink: 'Copier le lien',
  shareButton: 'Partager',
  print: 'Imprimer',
  download: 'Télécharger le passeport',
  passport: 'Le passeport numérique du produit fait partie de cette page, sous forme de données JSON-LD.',
  unsigned: 'Il n’est pas signé (version 1) : aucun émetteur ne s’en porte encore garant par une signature.',
  printed: 'État au bloc {block}, {time}',

  tapHow: 'Comment toucher la puce',
  tapWhere: 'La puce se trouve en général derrière une étiquette, un écusson ou le logo.',
  tapAndroid: 'Activez le NFC, déverrouillez le téléphone et posez le milieu de son dos sur la puce.',
  tapIphone:
    'Déverrouillez le téléphone, posez son bord supérieur sur la puce et ouvrez la notification. Dès l’iPhone XS.',

  search: 'Rechercher un article',
  searchToken: 'Par identifiant du jeton',
  searchItem: 'Par code article',
  searchTokenHint: 'Un nombre entier, par exemple 42',
  searchGtinHint: '8, 12, 13 ou 14 chiffres, sous le code-barres',
  searchSerialHint: 'Tel qu’imprimé, majuscules et minuscules comptent',
  searchButton: 'Rechercher',
  badToken: 'Un identifiant de jeton est un nombre entier, par exemple 42.',
  badGtin: 'Ce n’est pas un code article. Comparez chaque chiffre avec le code-barres.',
  badSerial: 'Un numéro de série a de 1 à 20 lettres, chiffres et signes courants, sans espace.',

  homeTitle: 'Ce produit est-il bien celui qu’il prétend être ?',
  homeLead: 'Approchez votre téléphone de la puce de l’article. La page qui s’ouvre vous le dit en une phrase.',
  homeStepTap: 'Touchez',
  homeStepTapText: 'La puce crée un nouveau code à chaque contact, et chaque code ne sert qu’une fois.',
  homeStepRead: 'Lisez',
  homeStepReadText: 'La page montre si la puce est authentique et ce que la blockchain dit de l’article.',
  homeStepCheck: 'Vérifiez',
  homeStepCheckText: 'Chaque réponse indique son bloc : chacun peut la répéter sans nous.',
  examples: 'Exemples',
  examplesText: 'Fiches de produits de démonstration sur la blockchain.',

  classTitle: 'Un type de produit, pas un article précis',
  classText:
    'Ce numéro désigne tous les articles de ce type. Seule la puce d’un article montre si celui-ci est authentique.',
  classSerial: 'Rechercher un article de ce type',
}
