// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// The interface of the registry: its events and errors. Every write to a record emits at least one event with its token id, so that a
/// record without an event did not change.
interface IAssetRegistry {
    // Shared with the public deployment: the same readers follow both contracts.

    event AssetMinted(uint256 indexed tokenId, address indexed to, bytes32 metadata);
    event TagBound(uint256 indexed tokenId, bytes32 indexed tagHash);
    /// `actor` is the account whose authority was used. It is the signer of a signature, not its relayer; the attester of a claim.
    event StateChanged(uint256 indexed tokenId, uint8 from, uint8 to, address actor);
    event AssetResold(uint256 indexed tokenId, address indexed from, address indexed to);

    // Our own.

    /// `flags` is the whole byte after the change.
    event FlagsChanged(uint256 indexed tokenId, uint8 flags, address actor, bytes32 reasonHash);
    event MetadataHashSet(uint256 indexed tokenId, bytes32 metadataHash);
    /// `nonce` is the raised one, which the recipient and a cancelling party sign.
    event TransferInitiated(
        uint256 indexed tokenId,
        address indexed from,
        address indexed to,
        uint64 expiry,
        uint32 nonce,
        bytes32 messageHash
    );
    /// Also emitted when a claim, a restocking or recycling drops a pending transfer.
    event TransferCancelled(uint256 indexed tokenId, uint32 nonce, address actor);

    /// The owner's signatures up to `nonce` are void; a pending transfer is cancelled.
    event NonceInvalidated(uint256 indexed tokenId, uint32 nonce, address actor);
    /// The item may be recycled from the second `notBefore` on, unless its reports are resolved first.
    event RecycleAnnounced(uint256 indexed tokenId, uint64 notBefore, address actor);
    event AttesterLimitSet(address indexed attester, uint32 perDay);

    /// ERC-5192: emitted once, at mint.
    event Locked(uint256 tokenId);
    /// ERC-7572.
    event ContractURIUpdated();

    error ZeroAddress();
    error AssetNotFound(uint256 tokenId);
    /// 0, an id that would make a signed attestation preimage a transaction, or one kept for the counter.
    error TokenIdRefused(uint256 tokenId);
    error TokenIdTaken(uint256 tokenId);
    /// The asset is in `state`, from which this step does not lead.
    error WrongState(uint256 tokenId, uint8 state);
    error ZeroTag();
    error TagTaken(bytes32 tagHash, uint256 tokenId);

    error NotOwner(uint256 tokenId, address account);
    error NotRecipient(uint256 tokenId, address account);
    error NotTransferParty(uint256 tokenId, address account);

    /// No bit, or a bit without a meaning.
    error InvalidFlags(uint8 bits);
    error FlagsAlreadySet(uint256 tokenId, uint8 bits);
    error FlagsNotSet(uint256 tokenId, uint8 bits);
    error FlagsNotAllowed(address account, uint8 bits);

    error NoPendingTransfer(uint256 tokenId);
    error TransferPending(uint256 tokenId);
    error TransferExpired(uint256 tokenId, uint64 expiry);
    error TransferToOwner(uint256 tokenId);
    error ExpiryPassed(uint64 expiry);

    error SignatureExpired(uint256 deadline);
    error InvalidSignature(address signer);

    /// A claimed item that was reported is recycled from `notBefore` on, and announced once; zero: it was not announced.
    error RecycleLocked(uint256 tokenId, uint64 notBefore);
    /// The attester has used up its claims and TAMPER marks of this day.
    error AttesterLimitReached(address attester, uint32 perDay);

    /// Approvals and the ERC-721 transfers do not exist here (ERC-5192); use initiateTransfer and acceptTransfer.
    error TransfersLocked();
}
