// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

/// Checks what a Touchstone gateway signed about a token (SPEC.md §4.8), on any chain. Its owner enters the gateway's published keys;
/// other contracts call it. It holds no money and stores no request.
///
/// An attestation is a statement, not a ticket: its holder can show it again, until it is too old. A contract that must act only once
/// keeps a record of that itself; one that depends on the state compares `state` itself.
contract AttestationVerifier is Ownable2Step {
    /// The second typed form: everything that the gateway's answer shows about the token at this block, issued at `issuedAt`
    /// (unix seconds). `ownerCommitment` is zero when the token has no owner.
    struct AssetAttestation {
        uint256 tokenId;
        uint8 state;
        uint8 flags;
        bool authentic;
        bool flagged;
        uint64 blockNumber;
        bytes32 blockHash;
        bytes32 ownerCommitment;
        uint64 issuedAt;
    }

    /// The first typed form: the token was in this state at this block; said at `timestamp` (unix seconds). It does not say
    /// whether the token is authentic or flagged, so neither can be decided from it.
    struct AssetState {
        uint256 tokenId;
        uint8 state;
        uint256 chainId;
        uint64 timestamp;
        uint64 blockNumber;
        bytes32 blockHash;
    }

    /// A signer counts from `validFrom` on, for attestations issued from `validFrom` to `validUntil`, both included. A revoked
    /// one counts for none: the thief of a key can put any time into an attestation.
    struct Key {
        uint64 validFrom;
        uint64 validUntil;
        bool revoked;
    }

    enum Outcome {
        Valid,
        OtherChain,
        NoSuchState,
        FromTheFuture,
        TooOld,
        BadSignature,
        UnknownSigner,
        OutsideKeyWindow,
        RevokedKey
    }

    event KeySet(address indexed signer, uint64 validFrom, uint64 validUntil);
    event KeyRevoked(address indexed signer);

    error BadKey(address signer);
    error NotAttested(Outcome outcome);

    bytes32 public constant ASSET_STATE_TYPEHASH = keccak256(
        "AssetState(uint256 tokenId,uint8 state,uint256 chainId,uint64 timestamp,uint64 blockNumber,bytes32 blockHash)"
    );
    bytes32 public constant ASSET_ATTESTATION_TYPEHASH = keccak256(
        "AssetAttestation(uint256 tokenId,uint8 state,uint8 flags,bool authentic,bool flagged,uint64 blockNumber,bytes32 blockHash,bytes32 ownerCommitment,uint64 issuedAt)"
    );
    bytes32 private constant DOMAIN_TYPEHASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    /// How far the gateway's clock may be ahead of this chain's.
    uint64 private constant CLOCK_TOLERANCE = 60;

    /// Chain and registry whose tokens are spoken of; not those of this contract.
    uint256 public immutable assetChainId;
    bytes32 public immutable domainSeparator;
    bytes32 public immutable domainSeparatorV2;
    mapping(address signer => Key) public keys;

    constructor(address owner_, uint256 assetChainId_, address assetRegistry) Ownable(owner_) {
        assetChainId = assetChainId_;
        domainSeparator = _domain("1", assetChainId_, assetRegistry);
        domainSeparatorV2 = _domain("2", assetChainId_, assetRegistry);
    }

    /// Refused: without an owner no leaked key could be revoked.
    function renounceOwnership() public pure override {
        revert OwnableInvalidOwner(address(0));
    }

    // Keys, as /.well-known/attestation.json of the gateway lists them

    /// Enters a key, or changes its window: the end of a retired one. What is revoked stays revoked.
    function setKey(address signer, uint64 validFrom, uint64 validUntil) external onlyOwner {
        if (signer == address(0) || validUntil <= validFrom || keys[signer].revoked) revert BadKey(signer);
        keys[signer] = Key(validFrom, validUntil, false);
        emit KeySet(signer, validFrom, validUntil);
    }

    function revokeKey(address signer) external onlyOwner {
        keys[signer].revoked = true;
        emit KeyRevoked(signer);
    }

    // The second typed form (EIP-712): for everything that moves value

    /// Reverts with `NotAttested` unless the signature is valid and at most `maxAge` seconds old.
    function requireAttestedV2(AssetAttestation calldata statement, bytes calldata signature, uint64 maxAge)
        external
        view
    {
        _require(checkV2(statement, signature, maxAge));
    }

    /// The chain and the registry are those of this contract: a statement about others has another signer, or none.
    function checkV2(AssetAttestation calldata statement, bytes calldata signature, uint64 maxAge)
        public
        view
        returns (Outcome)
    {
        return _check(
            statement.state, assetChainId, statement.issuedAt, typedDigestV2(statement), signature, maxAge
        );
    }

    function typedDigestV2(AssetAttestation calldata statement) public view returns (bytes32) {
        return _digest(domainSeparatorV2, keccak256(abi.encode(ASSET_ATTESTATION_TYPEHASH, statement)));
    }

    // The first typed form (EIP-712), which names block and registry, but signs of the record the state alone

    /// Reverts with `NotAttested` unless the signature is valid and at most `maxAge` seconds old.
    function requireAttested(AssetState calldata statement, bytes calldata signature, uint64 maxAge) external view {
        _require(check(statement, signature, maxAge));
    }

    function check(AssetState calldata statement, bytes calldata signature, uint64 maxAge)
        public
        view
        returns (Outcome)
    {
        return _check(
            statement.state, statement.chainId, statement.timestamp, typedDigest(statement), signature, maxAge
        );
    }

    function typedDigest(AssetState calldata statement) public view returns (bytes32) {
        return _digest(domainSeparator, keccak256(abi.encode(ASSET_STATE_TYPEHASH, statement)));
    }

    // The raw form of SPEC.md §4.8: no prefix, and it names neither block nor registry

    function requireAttestedRaw(
        uint256 tokenId,
        uint8 state,
        uint256 chainId,
        uint64 timestamp,
        bytes calldata signature,
        uint64 maxAge
    ) external view {
        _require(checkRaw(tokenId, state, chainId, timestamp, signature, maxAge));
    }

    function checkRaw(
        uint256 tokenId,
        uint8 state,
        uint256 chainId,
        uint64 timestamp,
        bytes calldata signature,
        uint64 maxAge
    ) public view returns (Outcome) {
        return _check(state, chainId, timestamp, rawDigest(tokenId, state, chainId, timestamp), signature, maxAge);
    }

    function rawDigest(uint256 tokenId, uint8 state, uint256 chainId, uint64 timestamp) public pure returns (bytes32) {
        return keccak256(abi.encode(tokenId, state, chainId, timestamp));
    }

    /// The signature is r, s and v in 65 bytes. The value s is in the lower half of the curve order; v is 27 or 28.
    function _check(
        uint8 state,
        uint256 chainId,
        uint64 timestamp,
        bytes32 digest,
        bytes calldata signature,
        uint64 maxAge
    ) private view returns (Outcome) {
        if (chainId != assetChainId) return Outcome.OtherChain;
        if (state == 0 || state > 6) return Outcome.NoSuchState;
        if (timestamp > block.timestamp + CLOCK_TOLERANCE) return Outcome.FromTheFuture;
        if (uint256(timestamp) + maxAge < block.timestamp) return Outcome.TooOld;
        (address signer, ECDSA.RecoverError fault,) = ECDSA.tryRecoverCalldata(digest, signature);
        if (fault != ECDSA.RecoverError.NoError) return Outcome.BadSignature;
        Key memory key = keys[signer];
        if (key.revoked) return Outcome.RevokedKey;
        if (key.validUntil == 0) return Outcome.UnknownSigner;
        if (key.validFrom > block.timestamp) return Outcome.OutsideKeyWindow;
        if (timestamp < key.validFrom || timestamp > key.validUntil) return Outcome.OutsideKeyWindow;
        return Outcome.Valid;
    }

    function _domain(string memory version, uint256 chainId, address registry) private pure returns (bytes32) {
        return keccak256(
            abi.encode(DOMAIN_TYPEHASH, keccak256("Touchstone"), keccak256(bytes(version)), chainId, registry)
        );
    }

    function _digest(bytes32 domain, bytes32 structHash) private pure returns (bytes32) {
        return keccak256(abi.encodePacked(hex"1901", domain, structHash));
    }

    function _require(Outcome outcome) private pure {
        if (outcome != Outcome.Valid) revert NotAttested(outcome);
    }
}
