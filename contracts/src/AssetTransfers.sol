// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {SignatureChecker} from "@openzeppelin/contracts/utils/cryptography/SignatureChecker.sol";
import {AssetLedger} from "./AssetLedger.sol";
import {MINTED, CLAIMED, RECYCLED} from "./Lifecycle.sol";

/// Ownership moves in two steps: the owner offers, the recipient accepts, and nothing moves before.
/// Each step is a call of the party itself, or a relayer's call with that party's EIP-712 signature.
/// The nonce rises with every offer, claim and restocking, so signatures of an earlier holding are dead.
abstract contract AssetTransfers is AssetLedger {
    bytes32 private constant INITIATE_TYPE = keccak256(
        "InitiateTransfer(uint256 tokenId,address from,address to,uint64 expiry,uint32 nonce,bytes32 messageHash)"
    );
    bytes32 private constant ACCEPT_TYPE =
        keccak256("AcceptTransfer(uint256 tokenId,address from,address to,uint64 expiry,uint32 nonce)");
    bytes32 private constant CANCEL_TYPE = keccak256("CancelTransfer(uint256 tokenId,address from,uint32 nonce)");
    bytes32 private constant INVALIDATE_TYPE =
        keccak256("InvalidateNonce(uint256 tokenId,address owner,uint32 nonce)");

    /// Offers the asset to `to` until the second `expiry`. Owner only. While an offer stands there is no second one:
    /// it has to be cancelled first.
    function initiateTransfer(uint256 tokenId, address to, uint64 expiry, bytes32 messageHash) external {
        Asset memory asset = _movable(tokenId);
        if (msg.sender != asset.owner) revert NotOwner(tokenId, msg.sender);
        _initiate(tokenId, asset.owner, to, expiry, messageHash);
    }

    /// As initiateTransfer, with the owner's InitiateTransfer over the current nonce.
    function initiateTransferBySig(
        uint256 tokenId,
        address to,
        uint64 expiry,
        bytes32 messageHash,
        bytes calldata signature
    ) external {
        address owner = _movable(tokenId).owner;
        uint32 nonce = _pending[tokenId].nonce;
        _checkSignature(
            owner, keccak256(abi.encode(INITIATE_TYPE, tokenId, owner, to, expiry, nonce, messageHash)), signature
        );
        _initiate(tokenId, owner, to, expiry, messageHash);
    }

    /// Takes the offered asset. Recipient only.
    function acceptTransfer(uint256 tokenId) external {
        Asset memory asset = _movable(tokenId);
        Pending memory pending = _offer(tokenId);
        if (msg.sender != pending.to) revert NotRecipient(tokenId, msg.sender);
        _accept(tokenId, asset, pending);
    }

    /// As acceptTransfer, with the recipient's AcceptTransfer over the nonce raised by the offer.
    function acceptTransferBySig(uint256 tokenId, bytes calldata signature) external {
        Asset memory asset = _movable(tokenId);
        Pending memory pending = _offer(tokenId);
        _checkSignature(
            pending.to,
            keccak256(abi.encode(ACCEPT_TYPE, tokenId, asset.owner, pending.to, pending.expiry, pending.nonce)),
            signature
        );
        _accept(tokenId, asset, pending);
    }

    /// Takes the offer back, or declines it, also while FLAGGED. Owner or recipient.
    function cancelTransfer(uint256 tokenId) external {
        _cancel(tokenId, _unfinished(tokenId).owner, msg.sender);
    }

    /// As cancelTransfer, with the CancelTransfer of `signer`, who is the owner or the recipient.
    function cancelTransferBySig(uint256 tokenId, address signer, bytes calldata signature) external {
        address owner = _unfinished(tokenId).owner;
        uint32 nonce = _pending[tokenId].nonce;
        _checkSignature(signer, keccak256(abi.encode(CANCEL_TYPE, tokenId, owner, nonce)), signature);
        _cancel(tokenId, owner, signer);
    }

    /// Voids what was signed for this token and not sent, and cancels what is pending, also while FLAGGED. Owner only.
    function invalidateNonce(uint256 tokenId) external {
        if (msg.sender != _unfinished(tokenId).owner) revert NotOwner(tokenId, msg.sender);
        _invalidate(tokenId, msg.sender);
    }

    /// As invalidateNonce, with the owner's InvalidateNonce over the current nonce.
    function invalidateNonceBySig(uint256 tokenId, bytes calldata signature) external {
        address owner = _unfinished(tokenId).owner;
        _checkSignature(
            owner, keccak256(abi.encode(INVALIDATE_TYPE, tokenId, owner, _pending[tokenId].nonce)), signature
        );
        _invalidate(tokenId, owner);
    }

    function _unfinished(uint256 tokenId) private view returns (Asset memory asset) {
        asset = _existing(tokenId);
        if (asset.state == RECYCLED) revert WrongState(tokenId, RECYCLED);
    }

    function _invalidate(uint256 tokenId, address actor) private {
        uint32 nonce = _pending[tokenId].nonce;
        _drop(tokenId, nonce + 1, actor);
        emit NonceInvalidated(tokenId, nonce, actor);
    }

    function _movable(uint256 tokenId) private view returns (Asset memory asset) {
        asset = _existing(tokenId);
        if (asset.state < MINTED || asset.state > CLAIMED) revert WrongState(tokenId, asset.state);
    }

    function _initiate(uint256 tokenId, address owner, address to, uint64 expiry, bytes32 messageHash) private {
        if (to == address(0)) revert ZeroAddress();
        if (to == owner) revert TransferToOwner(tokenId);
        if (expiry <= block.timestamp) revert ExpiryPassed(expiry);
        Pending memory pending = _pending[tokenId];
        if (pending.to != address(0) && block.timestamp <= pending.expiry) revert TransferPending(tokenId);
        uint32 nonce = pending.nonce + 1;
        _pending[tokenId] = Pending(to, expiry, nonce);
        emit TransferInitiated(tokenId, owner, to, expiry, nonce, messageHash);
    }

    function _offer(uint256 tokenId) private view returns (Pending memory pending) {
        pending = _pending[tokenId];
        if (pending.to == address(0)) revert NoPendingTransfer(tokenId);
    }

    function _accept(uint256 tokenId, Asset memory asset, Pending memory pending) private {
        if (block.timestamp > pending.expiry) revert TransferExpired(tokenId, pending.expiry);
        address from = asset.owner;
        _pending[tokenId] = Pending(address(0), 0, pending.nonce);
        asset.owner = pending.to;
        _store(tokenId, asset);
        _handedOver(tokenId, from, pending.to);
        emit AssetResold(tokenId, from, pending.to);
    }

    function _cancel(uint256 tokenId, address owner, address actor) private {
        Pending memory pending = _offer(tokenId);
        if (actor != owner && actor != pending.to) revert NotTransferParty(tokenId, actor);
        _drop(tokenId, pending.nonce, actor);
    }

    /// Ends what is pending, if anything is, and leaves `nonce` behind.
    function _drop(uint256 tokenId, uint32 nonce, address actor) internal {
        Pending memory pending = _pending[tokenId];
        if (pending.to != address(0)) emit TransferCancelled(tokenId, pending.nonce, actor);
        _pending[tokenId] = Pending(address(0), 0, nonce);
    }

    /// An account with code, an EIP-7702 delegate too, is asked by ERC-1271 and by nothing else.
    function _checkSignature(address signer, bytes32 structHash, bytes calldata signature) internal view {
        if (!SignatureChecker.isValidSignatureNowCalldata(signer, _hashTypedDataV4(structHash), signature)) {
            revert InvalidSignature(signer);
        }
    }
}
